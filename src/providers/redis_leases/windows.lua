-- windows.rs over again: what was counted in slots of a window, with its sum. A slot is let go of once all of it
-- has passed, so a window never counts less than an exact log would, and at most one slot longer.
local WINDOWS = {
  { key = KEYS[1], width = 500, length = 60000 },
  { key = KEYS[2], width = 120000, length = 86400000 },
  { key = KEYS[3], width = 500, length = 60000 },
  { key = KEYS[4], width = 120000, length = 86400000 },
}
local DAY = 86400000

-- Drops what has passed, each slot once.
local function window_used(window)
  local kept = redis.call('HMGET', window.key, 'sum', 'first')
  if not kept[1] then
    return 0
  end
  local total, first = tonumber(kept[1]), tonumber(kept[2])
  local oldest = math.floor((now - window.length + 1) / window.width)
  if first >= oldest then
    return total
  end
  -- All that is kept stands within a window's length of the first.
  if oldest - first > window.length / window.width + 1 then
    redis.call('DEL', window.key)
    return 0
  end
  local passed = {}
  for slot = first, oldest - 1 do
    passed[#passed + 1] = text(slot)
  end
  for _, amount in ipairs(redis.call('HMGET', window.key, unpack(passed))) do
    total = total - (tonumber(amount or 0) or 0)
  end
  redis.call('HDEL', window.key, unpack(passed))
  redis.call('HSET', window.key, 'sum', text(total), 'first', text(oldest))
  return total
end

-- Where the clock was set back, it counts from the oldest slot that is kept.
local function window_record(window, amount)
  window_used(window)
  local slot = math.floor(now / window.width)
  local first = tonumber(redis.call('HGET', window.key, 'first') or slot)
  redis.call('HSETNX', window.key, 'first', text(slot))
  redis.call('HINCRBY', window.key, text(math.max(slot, first)), text(amount))
  redis.call('HINCRBY', window.key, 'sum', text(amount))
  redis.call('PEXPIRE', window.key, text(window.length + window.width))
end

-- Requests of the key since 00:00 UTC.
local function day_used()
  local day, used = string.match(redis.call('GET', KEYS[5]) or '', '^(%d+) (%d+)$')
  if tonumber(day or 0) < math.floor(now / DAY) then
    return 0
  end
  return tonumber(used)
end

local function day_record(amount)
  local used = day_used() + amount
  redis.call('SET', KEYS[5], text(math.floor(now / DAY)) .. ' ' .. text(used), 'PX', text(DAY))
end

