-- Numbers are doubles here: whole ones are exact up to 2^53, and nothing passes that.
local MOST = 9007199254740991
local now = math.floor(now_us / 1000)

-- All digits, which tostring does not give.
local function text(n)
  return string.format('%.0f', n)
end

-- What members of the form TOKENS:… hold together.
local function sum(members)
  local tokens = 0
  for _, member in ipairs(members) do
    tokens = tokens + tonumber(string.match(member, '^%d+'))
  end
  return math.min(tokens, MOST)
end

