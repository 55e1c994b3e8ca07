-- SPDX-License-Identifier: Apache-2.0
-- ResNet-18, image classification at 224x224 (He et al., 2015): 3.6 GFLOP
local net = network { name = "resnet18", input = {1, 3, 224, 224} }

-- Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes.
local function basic(x, k, stride)
  local y = x:conv{k = k, kernel = 3, stride = stride, pad = 1}:batchnorm():relu()
  y = y:conv{k = k, kernel = 3, pad = 1}:batchnorm()
  if stride ~= 1 or x.shape[2] ~= k then
    x = x:conv{k = k, stride = stride}:batchnorm()
  end
  return (y + x):relu()
end

local x = net.input
x = x:conv{k = 64, kernel = 7, stride = 2, pad = 3}:batchnorm():relu()
x = x:maxpool{kernel = 3, stride = 2, pad = 1}
for stage, k in ipairs {64, 128, 256, 512} do
  x = basic(x, k, stage == 1 and 1 or 2)
  x = basic(x, k, 1)
end
x = x:global_avgpool():flatten():dense{n = 1000, bias = true}
return net:output(x)
