package secret

import "strings"

// schemeSeparator separates the scheme of an address from its authority.
const schemeSeparator = "://"

// maxAddressLen limits how much of an address is examined, to bound the cost of hostile text.
const maxAddressLen = 1 << 10

// matchAddress matches the part of an address from its scheme to the end of the password: user:password,
// before an @ and a host.
func matchAddress(s string) (int, bool) {
	s = s[:min(len(s), maxAddressLen)]
	end := strings.IndexFunc(s, isAuthorityEnd)
	ended := end >= 0 || len(s) == maxAddressLen
	if end >= 0 {
		s = s[:end]
	}
	user, rest, ok := strings.Cut(s, ":")
	if !ok || strings.Contains(user, "@") {
		return 0, ended
	}
	at := strings.LastIndexByte(rest, '@')
	// the text was truncated there
	if cut := strings.Index(rest, "…"); at < 0 && cut > 0 && strings.Trim(rest[:cut], "0123456789") != "" {
		at, rest = cut, rest[:cut]
	}
	if at <= 0 || isPlaceholder(rest[:at]) || rest[:at] == user && isLocalHost(strings.TrimPrefix(rest[at:], "@")) {
		return 0, ended
	}
	return len(user) + len(":") + at, ended
}

// isAuthorityEnd reports whether r cannot be part of an address's authority.
func isAuthorityEnd(r rune) bool { return r <= ' ' || strings.ContainsRune("/?#\\\"'`", r) }

// isPlaceholder reports whether password is only a placeholder: a variable, a gap in a pattern, or the mark of
// a masked password.
func isPlaceholder(password string) bool {
	return strings.ContainsAny(password[:1], "$%{<*[(") && !strings.HasPrefix(password, "%2") && !strings.HasPrefix(password, "%4") || strings.HasSuffix(password, truncatedMask) ||
		strings.Trim(password, "xX.") == ""
}

// isLocalHost reports whether host is this machine, where a password equal to the user name is not secret.
func isLocalHost(host string) bool {
	name, _, _ := strings.Cut(host, ":")
	return name == "localhost" || name == "127.0.0.1"
}

// passwordOffset returns the length of an address up to its password.
func passwordOffset(s string) int {
	return len(schemeSeparator) + strings.IndexByte(s[len(schemeSeparator):], ':') + 1
}
