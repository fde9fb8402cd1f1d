-- One decision: both limits checked, then both charged or neither.
-- KEYS: the user's bucket, the workspace's reservations, its settlements
-- ARGV: rate (0: none), units owed by decisions made without Redis, how the budget is held,
--       budget, used, estimate, number of the reading, member of the new reservation, its life in ms
-- Answers: the verdict, what calls in flight hold (where they alone stand in the way), units spent
local UNIT = 60000
local rate, owed, mode = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local budget, used, estimate = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

-- Whether the budget stands in the way, and by how much calls in flight alone do: budget.rs.
local function over_budget()
  if mode == 'off' then
    return false, false
  elseif mode == 'gate' then
    return used >= budget, false
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(now))
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', '(' .. text((now - 59999) * 1000))
  local unseen = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[7], '+inf')
  local total = math.min(used + sum(unseen), MOST)
  local held = sum(redis.call('ZRANGE', KEYS[2], 0, -1))
  if total >= budget then
    return true, false
  elseif (total == 0 and held == 0) or estimate <= budget - total - held then
    return false, false
  elseif estimate <= budget - total then
    return true, text(held)
  end
  return true, false
end

local verdict = 'admitted'
local over, reserved = over_budget()
local spent = 0
if rate > 0 then
  spent = drained(KEYS[1], rate) + owed
end
if over then
  verdict = 'budget'
elseif rate > 0 and spent + UNIT > rate * UNIT then
  verdict = 'rate'
else
  if mode == 'reserve' then
    redis.call('ZADD', KEYS[2], text(now + tonumber(ARGV[9])), ARGV[8])
    redis.call('PEXPIRE', KEYS[2], ARGV[9])
  end
  if rate > 0 then
    spent = spent + UNIT
  end
end
if spent > 0 then
  keep(KEYS[1], spent, rate)
end
return { verdict, reserved, text(spent) }
