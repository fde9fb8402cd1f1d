-- Takes a place for one call, if there is room in every window and under the cap, calls in flight counted.
-- KEYS: requests a minute, a day, tokens a minute, a day, the key's day;
--       open requests, open tokens (of the model under the key), open requests of the key
-- ARGV: 1-5 limits (-1: none), 6-10 used and 11-15 in flight as this replica knows them, tokens, member, life in ms
-- Whichever count is higher holds: this one's after Redis lost its own, Redis's of what others did just now.
for at = 6, 8 do
  redis.call('ZREMRANGEBYSCORE', KEYS[at], '-inf', text(now))
end
local open_requests = redis.call('ZCARD', KEYS[6])
local in_flight = { open_requests, open_requests, 0, 0, redis.call('ZCARD', KEYS[8]) }
local open_tokens = sum(redis.call('ZRANGE', KEYS[7], 0, -1))
in_flight[3], in_flight[4] = open_tokens, open_tokens
local tokens = tonumber(ARGV[16])

for at = 1, 5 do
  local limit = tonumber(ARGV[at])
  if limit >= 0 then
    local used
    if at == 5 then
      used = day_used()
    else
      used = window_used(WINDOWS[at])
    end
    local taken = math.max(used, tonumber(ARGV[at + 5])) + math.max(in_flight[at], tonumber(ARGV[at + 10]))
    local room
    if at == 3 or at == 4 then
      -- An estimate larger than the limit goes into an empty window.
      room = tokens <= limit - taken or (taken == 0 and limit > 0)
    else
      room = taken < limit
    end
    if not room then
      return 0
    end
  end
end

local deadline = text(now + tonumber(ARGV[18]))
redis.call('ZADD', KEYS[6], deadline, ARGV[17])
redis.call('ZADD', KEYS[7], deadline, text(tokens) .. ':' .. ARGV[17])
redis.call('ZADD', KEYS[8], deadline, ARGV[17])
for at = 6, 8 do
  redis.call('PEXPIRE', KEYS[at], ARGV[18])
end
return 1
