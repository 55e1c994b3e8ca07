-- SPDX-License-Identifier: Apache-2.0
-- a small network of every common kind of layer, for a first try and for tests: 1.8 MFLOP
local net = network { name = "tinynet", input = {1, 3, 32, 32} }

local x = net.input
x = x:conv{k = 16, kernel = 3, pad = 1, name = "stem"}:batchnorm():relu()
x = x:maxpool{kernel = 2}

local y = x:conv{k = 32}:batchnorm():relu6()
y = y:depthwise{kernel = 3, pad = 1}:batchnorm():relu6()
y = y:conv{k = 16}:batchnorm()
x = x + y

local left = x:conv{k = 16, kernel = 3, stride = 2, pad = 1, groups = 2, bias = true}:relu()
local right = x:avgpool{kernel = 2}:conv{k = 16}:sigmoid()
x = net:concat(left, right)
x = x:lrn{size = 5}

x = x:global_avgpool():flatten()
x = x:dense{n = 10, bias = true}:softmax()
return net:output(x)
