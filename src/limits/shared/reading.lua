-- KEYS: a workspace's numbers. Answers the number of a reading that begins now: settlements of a higher one are
-- not in it. Numbers never go back, also where the clock does, and those of a Redis that has lost everything go on.
local number = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now_us)
redis.call('SET', KEYS[1], text(number), 'PX', 180000)
return text(number)
