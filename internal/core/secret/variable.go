package secret

import (
	"net/url"
	"slices"
	"strings"
)

// words are the parts of a variable's name that say that it holds a key, and
// lastWords those that say so at its end.
var (
	words = []string{
		"TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "APIKEY", "CREDENTIAL", "CREDENTIALS", "COOKIE",
		"AUTHORIZATION", "AUTHTOKEN", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY",
	}
	lastWords = []string{"KEY", "KEYS", "PASS", "PW", "PWD", "PAT", "AUTH", "DSN", "BEARER", "JWT", "SESSION"}
)

// harmless are variables that are named like secrets and hold none.
var harmless = []string{
	"PWD", "OLDPWD", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "XDG_SESSION", "DESKTOP_SESSION", "GDMSESSION", "GNOME_DESKTOP_SESSION",
	"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_PAGER", "AWS_DEFAULT_OUTPUT", "AWS_CONFIG_FILE", "AWS_CA_BUNDLE", "GPG_KEY",
}

// clouds begin the names of variables that give access to somebody's machines.
var clouds = []string{"AWS_", "GOOGLE_APPLICATION_", "CLOUDSDK_AUTH_", "AZURE_CLIENT_", "ARM_CLIENT_", "OS_AUTH_", "DOCKER_AUTH_"}

// Variable reports whether a variable of an environment likely holds a key: by
// its name, or by what its value looks like.
func Variable(name, value string) bool {
	upper := strings.ToUpper(name)
	if value == "" || slices.Contains(harmless, upper) {
		return false
	}
	return slices.ContainsFunc(clouds, func(p string) bool { return strings.HasPrefix(upper, p) }) || saysSecret(upper) || looksSecret(value)
}

// saysSecret reports whether a name in capitals says that it is that of a key.
func saysSecret(upper string) bool {
	if strings.HasPrefix(upper, "OTEL_") && strings.HasSuffix(upper, "_HEADERS") {
		return true // what a collector is sent as a key
	}
	parts := strings.FieldsFunc(upper, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
	for len(parts) > 0 && strings.Trim(parts[len(parts)-1], "0123456789") == "" {
		parts = parts[:len(parts)-1] // API_KEY_2
	}
	for i, part := range parts {
		part = strings.TrimRight(part, "0123456789")
		last := i == len(parts)-1
		if slices.Contains(words, part) || last && (slices.Contains(lastWords, part) || endsIn(part)) {
			return true
		}
	}
	return false
}

// looksSecret reports whether a value is shaped like a key, or is an address with a
// password.
func looksSecret(value string) bool {
	if len(value) < shortestKey {
		return false
	}
	if strings.HasPrefix(value, "eyJ") {
		return strings.Count(value, ".") == 2
	}
	if begins(value) || strings.HasPrefix(value, "Bearer ") || strings.HasPrefix(value, "Basic ") {
		return true
	}
	if !strings.Contains(value, "://") || !strings.Contains(value, "@") {
		return false
	}
	u, err := url.Parse(value)
	if err != nil {
		return true // it cannot be told what stands before the @
	}
	_, has := u.User.Password()
	return has
}

// endsIn reports whether a word ends as names do that were written as one:
// OPENAIKEY, githubToken.
func endsIn(word string) bool {
	return slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD"}, func(end string) bool {
		return len(word) > len(end)+1 && strings.HasSuffix(word, end)
	}) && word != "HOTKEY" && word != "MONKEY"
}

// shortestKey is how long a value is that may be a key.
const shortestKey = 12

// Values are what of an environment, NAME=value each, is to be kept nowhere: what
// is named or shaped like a secret, and the passwords in addresses. Paths, and
// words and numbers that may stand anywhere, are left out.
func Values(environ []string) (values []string) {
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		value = strings.TrimSpace(value)
		upper := strings.ToUpper(name)
		if slices.Contains(harmless, upper) || !saysSecret(upper) && !looksSecret(value) {
			continue
		}
		if strings.Contains(value, "://") {
			if u, err := url.Parse(value); err == nil {
				value, _ = u.User.Password()
			}
		}
		value = value[strings.LastIndexByte(value, ' ')+1:] // Bearer …
		if !strings.ContainsRune("/~.", rune((value + "/")[0])) && telling(value) {
			values = append(values, value)
		}
	}
	return values
}

// telling reports whether a value is long and mixed enough not to be a word or a
// number that stands elsewhere, too.
func telling(value string) bool {
	if len(value) < 8 {
		return false
	}
	kinds := 0
	for _, of := range []*set{setOf("az"), setOf("AZ"), setOf("09")} {
		if strings.ContainsFunc(value, func(r rune) bool { return r < 128 && of[r] }) {
			kinds++
		}
	}
	return kinds > 1 || len(value) >= 20 && kinds > 0
}
