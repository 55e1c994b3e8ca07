-- SPDX-License-Identifier: Apache-2.0
-- VGG-16, image classification at 224x224 (Simonyan and Zisserman, 2014): 31 GFLOP
local net = network { name = "vgg16", input = {1, 3, 224, 224} }

local x = net.input
for _, stage in ipairs { {64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3} } do
  local k, repeats = table.unpack(stage)
  for _ = 1, repeats do
    x = x:conv{k = k, kernel = 3, pad = 1, bias = true}:relu()
  end
  x = x:maxpool{kernel = 2}
end
x = x:flatten()
x = x:dense{n = 4096, bias = true}:relu()
x = x:dense{n = 4096, bias = true}:relu()
x = x:dense{n = 1000, bias = true}
return net:output(x)
