-- SPDX-License-Identifier: Apache-2.0
-- MobileNetV2, image classification at 224x224 (Sandler et al., 2018): 0.6 GFLOP, depthwise
local net = network { name = "mobilenet_v2", input = {1, 3, 224, 224} }

-- Widen with 1x1, filter each channel, narrow with 1x1 and no activation.
local function inverted(x, expand, k, stride)
  local y = x
  if expand ~= 1 then
    y = y:conv{k = expand * x.shape[2]}:batchnorm():relu6()
  end
  y = y:depthwise{kernel = 3, stride = stride, pad = 1}:batchnorm():relu6()
  y = y:conv{k = k}:batchnorm()
  if stride == 1 and x.shape[2] == k then
    y = y + x
  end
  return y
end

local x = net.input:conv{k = 32, kernel = 3, stride = 2, pad = 1}:batchnorm():relu6()
-- expansion, channels, repeats, stride of the first
for _, stage in ipairs {
  {1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
  {6, 320, 1, 1},
} do
  local expand, k, repeats, stride = table.unpack(stage)
  for i = 1, repeats do
    x = inverted(x, expand, k, i == 1 and stride or 1)
  end
end
x = x:conv{k = 1280}:batchnorm():relu6()
x = x:global_avgpool():flatten():dense{n = 1000, bias = true}
return net:output(x)
