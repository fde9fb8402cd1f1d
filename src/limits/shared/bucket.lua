-- bucket.rs over again: units spent, drained at the limit in force, to the millisecond.

-- A product beyond 2^53 is inexact, and larger than any bucket.
local function drained(key, limit)
  local kept = redis.call('GET', key)
  if not kept then
    return 0
  end
  local spent, at = string.match(kept, '^(%d+) (%d+)$')
  return math.max(tonumber(spent) - limit * math.max(now - tonumber(at), 0), 0)
end

-- A minute longer than it takes to drain, so that a limit lowered meanwhile finds what was spent.
local function keep(key, spent, limit)
  redis.call('SET', key, text(spent) .. ' ' .. text(now), 'PX', text(math.ceil(spent / limit) + 60000))
end
