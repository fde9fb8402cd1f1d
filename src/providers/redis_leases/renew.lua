-- KEYS: as in take.lua; ARGV: life in ms, and of every call that is alive the open request's member and the open
-- tokens' member (empty where they are closed)
local deadline = text(now + tonumber(ARGV[1]))
for at = 2, #ARGV, 2 do
  if ARGV[at] ~= '' then
    redis.call('ZADD', KEYS[6], deadline, ARGV[at])
    redis.call('ZADD', KEYS[8], deadline, ARGV[at])
  end
  if ARGV[at + 1] ~= '' then
    redis.call('ZADD', KEYS[7], deadline, ARGV[at + 1])
  end
end
for at = 6, 8 do
  redis.call('PEXPIRE', KEYS[at], ARGV[1])
end
