package transport

import (
	"cmp"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"coder/internal/core/lazy"
)

// retryAfter reads the wait that a response asks for. A date is relative to
// the server's own clock if the server reports it, else to now.
func retryAfter(h http.Header, now func() time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	s, err := strconv.ParseFloat(v, 64)
	if ms, errMs := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); errMs == nil && ms > 0 {
		s, err = ms/1000, nil
	}
	if err == nil && !(s > 0) {
		return 0
	}
	if err == nil {
		return seconds(s)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return timeUntil(at, h, now)
}

// timeUntil returns the time until at by the server's own clock if
// the server reports it, else by now; 0 if neither is known.
func timeUntil(at time.Time, h http.Header, now func() time.Time) time.Duration {
	from, err := http.ParseTime(h.Get("Date"))
	switch {
	case err == nil:
	case now != nil:
		from = now()
	default:
		return 0
	}
	return min(max(0, at.Sub(from)), maxWait)
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, maxWait.Seconds()) * float64(time.Second))
}

// limitReset reads from the headers of a refused request when its limit ends. Servers report all their
// limits at once: the last used-up limit counts, or else the first limit to end.
func limitReset(h http.Header, now func() time.Time) time.Duration {
	var usedUp, others time.Duration
	for name := range h {
		low := strings.ToLower(name)
		if !strings.Contains(low, "ratelimit") || !strings.Contains(low, "reset") {
			continue
		}
		wait := parseReset(strings.TrimSpace(h.Get(name)), h, now)
		switch {
		case wait <= 0:
		case strings.TrimSpace(h.Get(strings.Replace(low, "reset", "remaining", 1))) == "0":
			usedUp = max(usedUp, wait)
		case others == 0 || wait < others:
			others = wait
		}
	}
	return cmp.Or(usedUp, others)
}

// parseReset parses the end of a limit: a duration, seconds, or a time in one of the formats of servers.
func parseReset(v string, h http.Header, now func() time.Time) time.Duration {
	if d, err := time.ParseDuration(v); err == nil {
		return min(d, maxWait)
	}
	n, err := strconv.ParseFloat(v, 64)
	switch {
	case err != nil:
	case n > 1e12: // milliseconds since 1970
		return timeUntil(time.UnixMilli(int64(min(n, 1e15))), h, now)
	case n > 1e9:
		return timeUntil(time.Unix(int64(n), 0), h, now)
	default:
		return seconds(n)
	}
	for _, layout := range []string{time.RFC3339, http.TimeFormat} {
		if at, err := time.Parse(layout, v); err == nil {
			return timeUntil(at, h, now)
		}
	}
	return 0
}

// parseWait finds in a server's message how long to wait, as in
// "try again in 3h12m" or "please retry after 20 seconds".
func parseWait(text string) (wait time.Duration) {
	m := waitPattern().FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return 0
	}
	for _, part := range waitPart().FindAllStringSubmatch(m[1], -1) {
		n, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return 0
		}
		unit := time.Second
		switch u := part[2]; {
		case u == "ms" || strings.HasPrefix(u, "milli"):
			unit = time.Millisecond
		case u[0] == 'm':
			unit = time.Minute
		case u[0] == 'h':
			unit = time.Hour
		case u[0] == 'd':
			unit = 24 * time.Hour
		}
		wait = min(wait+seconds(n*unit.Seconds()), maxWait)
	}
	return wait
}

var (
	waitPattern = sync.OnceValue(func() *regexp.Regexp {
		const amount = `\d+(?:\.\d+)? ?(?:milliseconds?|minutes?|mins?|ms|m|seconds?|secs?|s|hours?|hrs?|h|days?|d)`
		return regexp.MustCompile(`(?:again|retry|wait|resets?|available|renews?)(?: (?:again|after|in|at least|for|another|about))* ((?:` + amount + `(?:,? ?(?:and )?)?)+)`)
	})
	waitPart = lazy.Regexp(`(\d+(?:\.\d+)?) ?([a-z]+)`)
)

// maxWait limits what a server may ask, so that no figure overflows.
const maxWait = 365 * 24 * time.Hour
