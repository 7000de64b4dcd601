-- Asks for the targets of a file, line after line and round and round, and prints what it counted as one line of JSON.
-- Arguments: the file; how many lines to begin after.

local requests = {}
local at = 0

function init(args)
   for target in io.lines(args[1]) do
      requests[#requests + 1] = wrk.format("GET", target)
   end
   at = tonumber(args[2]) % #requests
end

function request()
   at = at % #requests + 1
   return requests[at]
end

function done(summary, _, _)
   local errors = summary.errors
   io.write(string.format(
      'COUNTED {"requests": %d, "microseconds": %d, "bytes": %d, "refused": %d, "broken": %d}\n',
      summary.requests, summary.duration, summary.bytes, errors.status,
      errors.connect + errors.read + errors.write + errors.timeout))
end
