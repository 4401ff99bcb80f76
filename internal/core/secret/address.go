package secret

import "strings"

// addressMark stands in an address between its scheme and whom it is for.
const addressMark = "://"

// longestAddress is how much of an address is looked at: a hostile text must not cost
// more.
const longestAddress = 1 << 10

// address is the part of an address behind its scheme, to the end of the password in
// it: user:password, before an @ and a host.
func address(s string) (int, bool) {
	s = s[:min(len(s), longestAddress)]
	end := strings.IndexFunc(s, endsAuthority)
	ended := end >= 0 || len(s) == longestAddress
	if end >= 0 {
		s = s[:end]
	}
	user, rest, ok := strings.Cut(s, ":")
	if !ok || strings.Contains(user, "@") {
		return 0, ended
	}
	at := strings.LastIndexByte(rest, '@')
	if cut := strings.Index(rest, "…"); at < 0 && cut > 0 && strings.Trim(rest[:cut], "0123456789") != "" { // the text was cut there
		at, rest = cut, rest[:cut]
	}
	if at <= 0 || stands(rest[:at]) || rest[:at] == user && local(strings.TrimPrefix(rest[at:], "@")) {
		return 0, ended
	}
	return len(user) + len(":") + at, ended
}

// endsAuthority reports whether a sign cannot be part of whom an address is for.
func endsAuthority(r rune) bool { return r <= ' ' || strings.ContainsRune("/?#\\\"'`", r) }

// stands reports whether something only stands for a password: a variable, a gap in
// a pattern, or the mark of one that was blotted out.
func stands(password string) bool {
	return strings.ContainsAny(password[:1], "$%{<*[(") && !strings.HasPrefix(password, "%2") && !strings.HasPrefix(password, "%4") || strings.HasSuffix(password, mark) ||
		strings.Trim(password, "xX.") == ""
}

// local reports whether a host is this machine: what has its user's name for a
// password there is no secret.
func local(host string) bool {
	name, _, _ := strings.Cut(host, ":")
	return name == "localhost" || name == "127.0.0.1"
}

// beforePassword is how much of an address stands before the password in it.
func beforePassword(s string) int {
	return len(addressMark) + strings.IndexByte(s[len(addressMark):], ':') + 1
}
