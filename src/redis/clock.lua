-- Redis's own clock, in microseconds: the one that all replicas share.
local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
