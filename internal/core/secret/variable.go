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
	if slices.ContainsFunc(clouds, func(p string) bool { return strings.HasPrefix(upper, p) }) {
		return true
	}
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
	if len(value) < shortestKey {
		return false
	}
	if slices.ContainsFunc(prefixesOfKeys, func(p string) bool { return strings.HasPrefix(value, p) }) {
		return true
	}
	if strings.HasPrefix(value, "eyJ") && strings.Count(value, ".") == 2 {
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

// prefixesOfKeys are how well-known services begin the keys they give out.
var prefixesOfKeys = []string{
	"sk-", "sk_live_", "sk_test_", "rk_live_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "xoxb-", "xoxp-", "xoxa-", "xapp-",
	"AKIA", "ASIA", "AIza", "ya29.", "hf_", "npm_", "pypi-", "dop_v1_", "SG.", "shpat_", "hvs.", "dckr_pat_", "lin_api_", "-----BEGIN", "Bearer ", "Basic ", "AGE-SECRET-KEY-",
}

// shortestKey is how long a value is that may be a key.
const shortestKey = 12
