"""The Lua scripts for atomic steps in Redis: append, claim, acknowledge and the state of the queue.

A script either completes or writes nothing: keys that could have another type are read before the first write, and
Redis checks memory and write permission at the first write. The scripts need Redis 7.0.
"""

from typing import Final

# KEYS: mark, reports, rechecks. ARGV: window in ms, the id of this attempt, then the report's fields and values.
# An attempt that is retried, as its answer was lost, gets the same answer again.
APPEND: Final = """
local existing = redis.call('GET', KEYS[1])
if existing then
  return existing == ARGV[2] and 1 or 0
end
redis.call('XLEN', KEYS[2])
redis.call('XLEN', KEYS[3])
local report = redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
redis.call('XADD', KEYS[3], '*', 'report', report, unpack(ARGV, 3))
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
return 1
"""

# KEYS: rechecks, dead letters. ARGV: group, worker, count, idle in ms (at least 1, as entries read by this script have
# 0), and how often an entry may be delivered. Returns {id, fields, deliveries} of each entry.
CLAIM: Final = """
local rechecks, dead, group, worker = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local count, idle, max_deliveries = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
redis.call('XLEN', dead)
redis.pcall('XGROUP', 'CREATE', rechecks, group, '0', 'MKSTREAM')

local from = '-'
repeat
  local held = redis.call('XPENDING', rechecks, group, 'IDLE', idle, from, '+', 100)
  for _, state in ipairs(held) do
    from = '(' .. state[1]
    if state[4] >= max_deliveries then
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
  local reply = redis.call('XAUTOCLAIM', rechecks, group, worker, idle, cursor, 'COUNT', count - #claimed)
  cursor = reply[1]
  for _, entry in ipairs(reply[2]) do
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
for index = 3, #ARGV do
  local held = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[index], ARGV[index], 1)
  if not held.err and held[1] and held[1][2] == ARGV[2] then
    redis.call('XACK', KEYS[1], ARGV[1], ARGV[index])
    redis.call('XDEL', KEYS[1], ARGV[index])
    done[#done + 1] = ARGV[index]
  end
end
return done
"""

# KEYS: rechecks, dead letters. ARGV: group, count. The group does not exist before the first claim.
WAITING: Final = """
local function or_empty(reply)
  return reply.err and {} or reply
end
return {
  redis.call('XLEN', KEYS[1]),
  redis.call('XLEN', KEYS[2]),
  or_empty(redis.pcall('XPENDING', KEYS[1], ARGV[1]))[1] or 0,
  or_empty(redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])),
  redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[2]),
  or_empty(redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[2])),
  redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', ARGV[2]),
}
"""
