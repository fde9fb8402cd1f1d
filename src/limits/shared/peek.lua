-- KEYS: a bucket; ARGV: the rate. Answers the units spent, and changes nothing.
return text(drained(KEYS[1], tonumber(ARGV[1])))
