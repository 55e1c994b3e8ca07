-- SPDX-License-Identifier: Apache-2.0
-- SqueezeNet 1.1, image classification at 224x224 (Iandola et al., 2016): 0.7 GFLOP, concatenations
local net = network { name = "squeezenet", input = {1, 3, 224, 224} }

local function fire(x, squeeze, expand)
  x = x:conv{k = squeeze, bias = true}:relu()
  local one = x:conv{k = expand, bias = true}:relu()
  local three = x:conv{k = expand, kernel = 3, pad = 1, bias = true}:relu()
  return net:concat(one, three)
end

local x = net.input:conv{k = 64, kernel = 3, stride = 2, bias = true}:relu()
x = x:maxpool{kernel = 3, stride = 2, ceil = true}
x = fire(fire(x, 16, 64), 16, 64)
x = x:maxpool{kernel = 3, stride = 2, ceil = true}
x = fire(fire(x, 32, 128), 32, 128)
x = x:maxpool{kernel = 3, stride = 2, ceil = true}
x = fire(fire(x, 48, 192), 48, 192)
x = fire(fire(x, 64, 256), 64, 256)
x = x:conv{k = 1000, bias = true}:relu()
x = x:global_avgpool():flatten():softmax()
return net:output(x)
