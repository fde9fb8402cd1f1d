-- Ends what a call holds, and counts what it used.
-- KEYS: as in take.lua; ARGV: 1-5 whether each count is kept (1 or 0), the open request's member, the open tokens'
-- member (empty: they stay open), requests and tokens that count from now
if ARGV[6] ~= '' then
  redis.call('ZREM', KEYS[6], ARGV[6])
  redis.call('ZREM', KEYS[8], ARGV[6])
end
if ARGV[7] ~= '' then
  redis.call('ZREM', KEYS[7], ARGV[7])
end
for at = 1, 4 do
  local amount = tonumber(ARGV[at < 3 and 8 or 9])
  if ARGV[at] == '1' and amount > 0 then
    window_record(WINDOWS[at], amount)
  end
end
if ARGV[5] == '1' and tonumber(ARGV[8]) > 0 then
  day_record(tonumber(ARGV[8]))
end
