package transport

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"coder/internal/core/clip"
	"coder/internal/core/sanitize"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
)

// fault is a server's description of a failure.
type fault struct {
	text     string        // its message
	upstream string        // the message of the upstream server
	labels   string        // types and codes
	status   int           // an HTTP status in the message
	isPlain  bool          // not JSON: probably not from an API
	isPage   bool          // a web page: probably from a proxy
	wait     time.Duration // the requested wait
	window   int           // the model's window in tokens
}

// readFault parses an error body: OpenAI's object or one of its many variants, a string, a page, or nothing.
func readFault(body []byte) fault {
	f := fault{isPlain: !jsonscan.IsComplete(body), isPage: isMarkup(body)}
	switch {
	case f.isPage:
		f.text = pageText(body)
	case f.isPlain:
		f.text = CleanLine(string(body))
	default:
		f.read(jsonscan.TrimSpace(body), 0)
	}
	if f.upstream != "" {
		f.text = strings.TrimPrefix(f.text+": "+f.upstream, ": ")
	}
	f.text = CleanLine(f.text)
	if f.wait == 0 {
		f.wait = parseWait(f.text)
	}
	return f
}

// maxErrorDepth is how deep an error may be nested.
const maxErrorDepth = 6

func (f *fault) read(raw []byte, depth int) {
	if jsonscan.IsString(raw) && f.text == "" { // the first message counts
		f.text = CleanLine(jsonscan.String(raw))
	}
	if depth > maxErrorDepth {
		return
	}
	for e := jsonscan.Elements(raw); e.Next(); {
		f.read(e.Val, depth+1)
	}
	for m := jsonscan.Members(raw); m.Next(); {
		switch string(m.Key) {
		case "error", "errors", "detail", "choices", "message", "msg", "error_msg", "error_description":
			f.read(m.Val, depth+1)
		case "type", "code", "status", "error_code", "status_code", "param", "reason":
			if n, ok := jsonscan.Int(m.Val); ok && n >= 400 && n <= 599 {
				f.status = n
			} else {
				f.labels += " " + strings.ToLower(strings.Trim(string(m.Val), `"`))
			}
		case "n_ctx": // llama.cpp
			f.window = toTokens(jsonscan.Float(m.Val))
		case "metadata": // OpenRouter's copy of the upstream server's error
			if up := jsonscan.String(jsonscan.Get(m.Val, "raw")); jsonscan.IsComplete([]byte(up)) {
				inner := readFault([]byte(up))
				f.upstream, f.labels, f.window = inner.text, f.labels+inner.labels, inner.window
			} else if up != "" {
				f.upstream = CleanLine(up)
			}
		case "resets_in_seconds", "retry_after", "retry_after_seconds", "estimated_time":
			if s := jsonscan.Float(m.Val); s > 0 {
				f.wait = seconds(s)
			}
		case "details": // the delay in Google's errors
			for e := jsonscan.Elements(m.Val); e.Next(); {
				if d, err := time.ParseDuration(jsonscan.String(jsonscan.Get(e.Val, "retryDelay"))); err == nil && d > 0 {
					f.wait = d
				}
			}
		}
	}
}

// InBandError returns the error that a server reports inside a reply
// with status 200. It counts like the same HTTP error.
func InBandError(raw []byte) error {
	f := readFault(raw)
	if f.status != 0 {
		return classify(f.status, f)
	}
	status := http.StatusInternalServerError // an error without a reason may be temporary
	for _, l := range labelStatuses {
		if strings.Contains(f.labels, l.label) {
			status = l.status
			break
		}
	}
	e := classify(status, f)
	e.Status = 0 // only a guess
	return e
}

// labelStatuses are the HTTP statuses that usually go with labels.
var labelStatuses = []struct {
	label  string
	status int
}{
	{"insufficient_quota", http.StatusTooManyRequests},
	{"rate_limit", http.StatusTooManyRequests},
	{"resource_exhausted", http.StatusTooManyRequests},
	{"overloaded", statusOverloaded},
	{"unavailable", http.StatusServiceUnavailable},
	{"timeout", http.StatusGatewayTimeout},
	{"authentication", http.StatusUnauthorized},
	{"invalid_api_key", http.StatusUnauthorized},
	{"permission", http.StatusForbidden},
	{"not_found", http.StatusNotFound},
	{"invalid", http.StatusBadRequest},
	{"bad_request", http.StatusBadRequest},
	{"badrequest", http.StatusBadRequest},
	{"unsupported", http.StatusBadRequest},
	{"context_length", http.StatusBadRequest},
	{"exceed_context", http.StatusBadRequest},
}

// statusOverloaded is the status that some vendors use for overload.
const statusOverloaded = 529

// classify determines the kind of failure f and whether it may pass.
func classify(status int, f fault) *provider.Error {
	f.text = cmp.Or(sanitize.ForeignText(f.text), http.StatusText(status), "no reason given")
	e := &provider.Error{Status: status, RetryAfter: f.wait}
	if e.Kind, e.Retryable = f.kind(status); e.Kind == provider.ErrContextTooLong {
		e.Window = cmp.Or(f.window, parseWindow(f.text))
	}
	if e.Retryable && f.wait > 0 {
		f.text += "; " + fmt.Sprintf("the server asked to wait %v", f.wait)
	}
	e.Err = errors.New(f.text)
	return e
}

func (f fault) kind(status int) (kind error, retryable bool) {
	p := faultPatterns()
	all := f.labels + " " + strings.ToLower(f.text)
	client := status >= 400 && status < 500
	// Google uses one sentence for a quota that is used up and for a limit that ends by itself; only for
	// the latter does it say how long to wait.
	usedUp := strings.Contains(f.labels, "insufficient_quota") ||
		f.wait == 0 && !strings.Contains(f.labels, "resource_exhausted") && p.quota.MatchString(all)
	switch {
	case p.noTools.MatchString(all):
		return provider.ErrNoTools, false
	case status == http.StatusRequestEntityTooLarge, p.tooLong.MatchString(all),
		status == http.StatusTooManyRequests && strings.Contains(all, "request too large"):
		return provider.ErrContextTooLong, false
	case status == http.StatusPaymentRequired, client && usedUp:
		return provider.ErrQuota, false
	case f.isPage && status == http.StatusForbidden && !p.badKey.MatchString(all):
		return provider.ErrNotAnAPI, false
	case status == http.StatusUnauthorized, status == http.StatusForbidden, client && p.badKey.MatchString(all):
		return provider.ErrAuth, false
	case client && p.noModel.MatchString(all), status == http.StatusNotFound && strings.Contains(all, "model"):
		return provider.ErrUnknownModel, false
	case status == http.StatusTooManyRequests:
		return provider.ErrRateLimited, true
	case status >= 500 && p.loading.MatchString(all):
		return provider.ErrLoading, true
	case status == http.StatusServiceUnavailable, status == statusOverloaded:
		return provider.ErrOverloaded, true
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		return nil, true
	case client && p.wantsTLS.MatchString(all):
		return provider.ErrUnreachable, false
	case f.isPlain && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed):
		return provider.ErrNotAnAPI, false
	case client:
		return provider.ErrBadRequest, false
	}
	return nil, true
}

type faultPatternSet struct{ noTools, tooLong, quota, badKey, noModel, wantsTLS, loading *regexp.Regexp }

// faultPatterns matches the words of vendors, in lower case.
var faultPatterns = sync.OnceValue(func() faultPatternSet {
	any := func(alternatives ...string) *regexp.Regexp {
		return regexp.MustCompile(strings.Join(alternatives, "|"))
	}
	const tools = "['\"`]?(tools?|tool[ _-]?(use|calls?|calling)|function[ _-]?call(s|ing)?|functions)['\"`]?"
	return faultPatternSet{
		noTools: any(
			`tools? param\w* requires`, `requires --enable-auto-tool-choice`, `endpoints? found that supports? tool`,
			`(not|n't|n’t|no) support\w*( the| for| native)?( parameter| parameters| feature)?:? `+tools+`\b`,
			tools+` (is|are|use is)( currently)? (not (supported|enabled|available|allowed|implemented)|unsupported|disabled)`,
			`tool use with function calling is unsupported`,
			`(unsupported|unrecognized|unrecognised|unknown|unexpected|extra)( \w+){0,4}:? ['"`+"`"+`]?tools\b`,
			`不支持.{0,8}(工具|函数|tools|function)`,
		),
		tooLong: any(
			`context_length_exceeded`, `exceed_context_size`, `context_window_exceeded`, `model_context_window_exceeded`,
			`(maximum|max|model'?s?) context (length|size|window)`,
			`maximum prompt length`,
			`(exceed\w*|larger than|greater than|longer than|overflow\w*|beyond)[^.]{0,60}context (length|size|window|limit)`,
			`context (length|size|window|limit)[^.]{0,40}(exceed|overflow|too (small|long))`,
			`(prompt|input|conversation|request)( is|'s)? too long`,
			`input token count[^.]{0,60}exceeds`,
			`prompt token count[^.]{0,60}exceeds`,
			`(exceed\w*|over)( the| this)? model('s)? (token|input|context) limit`,
			`token limit exceeded`,
			`prompt (exceeds|exceeded)( the)? max`,
			`reduce the length of (the|your) (messages|prompt|input)`,
			`range of input length should be`,
			`tokens? in prompt exceed`,
			`loaded with context length of only`,
			"inputs?`? tokens? \\+ `?max_new_tokens`? must be",
		),
		quota: any(
			`insufficient[ _](quota|balance|credits?|funds)`, `exceeded_current_quota`, `exceeded your current quota`,
			`billing_hard_limit`, `billing_not_active`, `credit balance is too low`, `payment required`,
			`(check|update) your (plan and )?billing`, `out of credits`, `requires more credits`, `arrearage`,
		),
		badKey: any(
			`invalid_api_key`, `(invalid|incorrect|missing|wrong|expired) (api[ _-]?)?key`,
			`api[ _-]?key (is )?(not valid|invalid|expired|missing)`,
			`no auth credentials`, `authentication_error`,
		),
		noModel: any(
			`model_not_found`, `model_not_exist`, `model not exist`, `(no such|unknown|invalid|unsupported) model`,
			`model\b.{0,100}(does not exist|not found|doesn't exist|is not available|is not valid|isn't available)`,
			`not a valid model`,
		),
		loading: any(
			`loading (the )?model`, `model\b.{0,100}\b(is|being|still|currently) (being )?load(ing|ed)`,
			`model\b.{0,100}\bnot( yet)? (loaded|ready)`,
			`waiting for (the )?(llama )?(runner|server) to start`, `server (is )?(still )?(starting|loading)`, `warming up`,
		),
		wantsTLS: any(`http request to an https server`, `plain http request was sent to https port`),
	}
})

// windowPatterns match the sentences in which servers report
// their window, in lower case, with the figure as the group.
var windowPatterns = sync.OnceValue(func() (list []*regexp.Regexp) {
	for _, words := range []string{
		`(?:context|prompt|model|sequence) (?:length|window|size|limit)(?: is| of| to|:)?(?: only| at most)? \(?(\d+)`,
		`(\d+) (?:tokens? )?maximum context`,
		`> (\d+) maximum`,
		`number of tokens allowed \((\d+)\)`,
		`(?:exceed\w*|over|above) (?:the |model )*(?:token |context )*limit(?: of|:)? \(?(\d+)`,
		`range of input length should be \[\d+, (\d+)\]`,
		`must be <= (\d+)`,
		`n_ctx[\s"':=]+(\d+)`,
	} {
		list = append(list, regexp.MustCompile(words))
	}
	return list
})

// parseWindow returns the server's window in tokens from its refusal of a longer request; 0 if it is not stated.
func parseWindow(text string) int {
	text = textPatterns().thousands.ReplaceAllString(strings.ToLower(text), "$1$2")
	for _, p := range windowPatterns() {
		if m := p.FindStringSubmatch(text); m != nil {
			n, _ := strconv.ParseFloat(m[1], 64) // digits only
			return toTokens(n)
		}
	}
	return 0
}

// maxErrorText limits how many bytes of a server's error message are kept.
const maxErrorText = 500

// CleanLine makes a server's message one line: no control characters, nothing invisible, and not too long.
func CleanLine(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), 20*maxErrorText)], "\uFFFD")
	if strings.Contains(s, "\x1b") {
		s = textPatterns().escape.ReplaceAllString(s, "")
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxErrorText {
		return s
	}
	return strings.TrimSpace(clip.Head(s, maxErrorText)) + "…"
}

// isMarkup reports whether body is a web page rather than an answer.
func isMarkup(body []byte) bool {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, bom))
	return len(body) > 0 && body[0] == '<'
}

// pageText returns the readable text of a web page.
func pageText(page []byte) string {
	m := textPatterns()
	text := m.unreadable.ReplaceAll(page, []byte(" "))
	text = m.tag.ReplaceAll(text, []byte(" "))
	return CleanLine(html.UnescapeString(string(text)))
}

type textPatternSet struct{ unreadable, tag, escape, thousands *regexp.Regexp }

// textPatterns matches unreadable parts: of a page, where an unclosed element or tag extends to the
// end, of text for a terminal, and of figures.
var textPatterns = sync.OnceValue(func() textPatternSet {
	return textPatternSet{
		unreadable: regexp.MustCompile(`(?is)<!--.*?(-->|$)|<script\b.*?(</script\s*>|$)|<style\b.*?(</style\s*>|$)`),
		tag:        regexp.MustCompile(`(?s)<[^>]*(>|$)`),
		thousands:  regexp.MustCompile(`(\d)[,_'](\d{3})\b`),
		escape:     regexp.MustCompile(`\x1b(\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)`),
	}
})

// minSecretLen is the length from which a secret differs from a word. A secret shorter than
// plainSecretLen is recognized only on its own.
const (
	minSecretLen   = 8
	plainSecretLen = 16
)

// collectSecrets are the values that no error may show.
func collectSecrets(o Options) []string {
	var s []string
	if key := strings.TrimSpace(o.APIKey); len(key) >= minSecretLen {
		s = append(s, key)
	}
	for _, named := range []map[string]string{o.Headers, o.Query} {
		for name, v := range named {
			name = strings.ToLower(name)
			_, bare, _ := strings.Cut(v, " ")
			for _, v := range []string{v, bare} {
				if len(v) >= minSecretLen && (strings.Contains(name, "auth") || strings.Contains(name, "key") ||
					strings.Contains(name, "token") || strings.Contains(name, "sig")) {
					s = append(s, v)
				}
			}
		}
	}
	return s
}

// maskSecrets masks secrets in text before it is shown, including a secret cut off at the end of the text.
func maskSecrets(text string, secrets []string) string {
	for _, s := range secrets {
		text = maskSecret(text, s)
		head, wasCut := strings.CutSuffix(text, "…")
		for n := len(s) - 1; wasCut && n >= minLeakedBytes; n-- {
			if strings.HasSuffix(head, s[:n]) {
				text = head[:len(head)-n] + mask + "…"
				break
			}
		}
	}
	return text
}

// maskSecret masks a secret everywhere; a short one not within a longer word.
func maskSecret(text, secret string) string {
	if len(secret) >= plainSecretLen {
		return strings.ReplaceAll(text, secret, mask)
	}
	var b strings.Builder
	for {
		i := strings.Index(text, secret)
		if i < 0 {
			return b.String() + text
		}
		end := i + len(secret)
		before := b.String() + text[:i]
		inside := before != "" && isWordByte(before[len(before)-1]) && isWordByte(secret[0]) ||
			isWordByte(secret[len(secret)-1]) && end < len(text) && isWordByte(text[end])
		b.WriteString(text[:i])
		if inside {
			b.WriteString(secret)
		} else {
			b.WriteString(mask)
		}
		text = text[end:]
	}
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

const (
	mask           = "[key]"
	minLeakedBytes = 4 // bytes of a secret that give it away
)
