// Package secret tells by a file's name whether it usually holds keys: such a
// file is never read without the person's leave, neither by the model nor by
// the program on its own account.
package secret

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// files are what usually holds keys, in lower case. A pattern without a slash
// is about the last part of a path, one with a slash about its end, one that
// begins with a slash about all of it.
var files = []string{
	".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_*_sk", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd",
	".npmrc", ".pypirc", "credentials.json", "service-account*.json", "secrets.y*ml", "*.tfvars",
	".ssh/**", ".gnupg/**", ".aws/credentials", ".aws/config", ".kube/config", ".docker/config.json", ".config/gcloud/**", ".config/gh/hosts.yml",
	".azure/**", ".coder/config.json",
	"/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssl/private/**", "/proc/*/environ", "/proc/*/mem", "/dev/sd*", "/dev/nvme*", "/dev/vd*", "/dev/mem",
}

// samples are the ends of names that are like those of secrets and hold none.
var samples = []string{".example", ".sample", ".template", ".dist", ".defaults", ".pub"}

// Is reports whether a file usually holds keys. A relative path is one below
// the workspace, whose own settings, unlike the person's, hold none. Case does
// not count: on some file systems .ENV is .env.
func Is(file string) bool {
	place := strings.ToLower(path.Clean(filepath.ToSlash(file)))
	if place == ".coder/config.json" || slices.ContainsFunc(samples, func(end string) bool { return strings.HasSuffix(place, end) }) {
		return false
	}
	return slices.ContainsFunc(files, func(pattern string) bool {
		name := path.Base(place)
		if strings.Contains(pattern, "/") {
			name = place
			if !path.IsAbs(pattern) {
				pattern = "**/" + pattern
			}
		}
		ok, err := doublestar.Match(pattern, name)
		return err == nil && ok
	})
}
