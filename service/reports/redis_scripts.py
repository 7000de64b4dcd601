"""The steps that Redis must take as one, in Lua: append, claim, acknowledge, and a look at the whole queue.

A script either runs to its end or has written nothing. What could stop it half-way, a key of another type, is touched
before the first write; memory and the right to write are checked by Redis at the first write. Redis 7.0 knows all that
is used here.
"""

from typing import Final

# KEYS: mark, reports, rechecks. ARGV: window in ms, this attempt's name, then the report's fields and values.
# An attempt that comes twice, because its first answer was lost, is told what the first would have been.
APPEND: Final = """
local standing = redis.call('GET', KEYS[1])
if standing then
  return standing == ARGV[2] and 1 or 0
end
redis.call('XLEN', KEYS[2])
redis.call('XLEN', KEYS[3])
local report = redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
redis.call('XADD', KEYS[3], '*', 'report', report, unpack(ARGV, 3))
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
return 1
"""

# KEYS: rechecks, dead letters. ARGV: group, worker, count, idle in ms (1 or more: what is read here has 0), and how
# often an entry may be delivered. Returns {id, fields, deliveries} of each.
CLAIM: Final = """
local rechecks, dead, group, worker = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local count, idle, most = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
redis.call('XLEN', dead)
redis.pcall('XGROUP', 'CREATE', rechecks, group, '0', 'MKSTREAM')

local from = '-'
repeat
  local held = redis.call('XPENDING', rechecks, group, 'IDLE', idle, from, '+', 100)
  for _, state in ipairs(held) do
    from = '(' .. state[1]
    if state[4] >= most then
      local entry = redis.call('XRANGE', rechecks, state[1], state[1])[1]
      if entry then
        redis.call('XADD', dead, '*', 'recheck', state[1], 'worker', state[2], 'deliveries', state[4],
          unpack(entry[2]))
      end
      redis.call('XACK', rechecks, group, state[1])
      redis.call('XDEL', rechecks, state[1])
    end
  end
until #held < 100

local claimed = {}
local new = redis.call('XREADGROUP', 'GROUP', group, worker, 'COUNT', count, 'STREAMS', rechecks, '>')
if new then
  for _, entry in ipairs(new[1][2]) do
    claimed[#claimed + 1] = {entry[1], entry[2], 1}
  end
end
local cursor = '0-0'
while #claimed < count do
  local left = redis.call('XAUTOCLAIM', rechecks, group, worker, idle, cursor, 'COUNT', count - #claimed)
  cursor = left[1]
  for _, entry in ipairs(left[2]) do
    local state = redis.call('XPENDING', rechecks, group, entry[1], entry[1], 1)[1]
    claimed[#claimed + 1] = {entry[1], entry[2], state[4]}
  end
  if cursor == '0-0' then
    break
  end
end
return claimed
"""

# KEYS: rechecks. ARGV: group, worker, then ids. Returns those that the worker held.
ACKNOWLEDGE: Final = """
local done = {}
for place = 3, #ARGV do
  local held = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[place], ARGV[place], 1)
  if not held.err and held[1] and held[1][2] == ARGV[2] then
    redis.call('XACK', KEYS[1], ARGV[1], ARGV[place])
    redis.call('XDEL', KEYS[1], ARGV[place])
    done[#done + 1] = ARGV[place]
  end
end
return done
"""

# KEYS: rechecks, dead letters. ARGV: group, count. The group is not there before the first claim.
WAITING: Final = """
local function known(reply)
  return reply.err and {} or reply
end
return {
  redis.call('XLEN', KEYS[1]),
  redis.call('XLEN', KEYS[2]),
  known(redis.pcall('XPENDING', KEYS[1], ARGV[1]))[1] or 0,
  known(redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])),
  redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[2]),
  known(redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[2])),
  redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', ARGV[2]),
}
"""
