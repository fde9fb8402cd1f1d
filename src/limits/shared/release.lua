-- Ends a reservation.
-- KEYS: the workspace's reservations, its settlements, its numbers
-- ARGV: the reservation's member; and where it was settled, the settlement's
redis.call('ZREM', KEYS[1], ARGV[1])
if ARGV[2] then
  local number = math.max(tonumber(redis.call('GET', KEYS[3]) or 0) + 1, now_us)
  redis.call('SET', KEYS[3], text(number), 'PX', 180000)
  redis.call('ZADD', KEYS[2], text(number), ARGV[2])
  redis.call('PEXPIRE', KEYS[2], 60000)
end
