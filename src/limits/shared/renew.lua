-- KEYS: a workspace's reservations; ARGV: their life in ms, and the members that are alive.
for at = 2, #ARGV do
  redis.call('ZADD', KEYS[1], text(now + tonumber(ARGV[1])), ARGV[at])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
