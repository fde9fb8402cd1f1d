-- KEYS: a bucket; ARGV: the rate. Takes one request out of the bucket.
local rate = tonumber(ARGV[1])
local spent = drained(KEYS[1], rate) - 60000
if spent > 0 then
  keep(KEYS[1], spent, rate)
else
  redis.call('DEL', KEYS[1])
end
