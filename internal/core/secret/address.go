package secret

import "strings"

// addressMark separates the scheme of an address from its authority.
const addressMark = "://"

// longestAddress limits how much of an address is examined, to bound the cost of hostile text.
const longestAddress = 1 << 10

// address matches the part of an address from its scheme to the end of the password: user:password,
// before an @ and a host.
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
	if cut := strings.Index(rest, "…"); at < 0 && cut > 0 && strings.Trim(rest[:cut], "0123456789") != "" { // the text was truncated there
		at, rest = cut, rest[:cut]
	}
	if at <= 0 || stands(rest[:at]) || rest[:at] == user && local(strings.TrimPrefix(rest[at:], "@")) {
		return 0, ended
	}
	return len(user) + len(":") + at, ended
}

// endsAuthority reports whether r cannot be part of an address's authority.
func endsAuthority(r rune) bool { return r <= ' ' || strings.ContainsRune("/?#\\\"'`", r) }

// stands reports whether password is only a placeholder: a variable, a gap in a pattern, or the mark of
// a masked password.
func stands(password string) bool {
	return strings.ContainsAny(password[:1], "$%{<*[(") && !strings.HasPrefix(password, "%2") && !strings.HasPrefix(password, "%4") || strings.HasSuffix(password, mark) ||
		strings.Trim(password, "xX.") == ""
}

// local reports whether host is this machine, where a password equal to the user name is not secret.
func local(host string) bool {
	name, _, _ := strings.Cut(host, ":")
	return name == "localhost" || name == "127.0.0.1"
}

// beforePassword returns the length of an address up to its password.
func beforePassword(s string) int {
	return len(addressMark) + strings.IndexByte(s[len(addressMark):], ':') + 1
}
