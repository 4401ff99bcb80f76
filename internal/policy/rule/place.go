package rule

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// place is a file as rules see it: below the workspace by its path from there,
// elsewhere by its absolute path.
func (b *Book) place(file string) string {
	file = strings.TrimPrefix(file, "file://")
	if rest, ok := strings.CutPrefix(file, "~/"); ok && b.Home != "" {
		file = filepath.Join(b.Home, rest)
	}
	if !filepath.IsAbs(file) {
		return path.Clean(filepath.ToSlash(file))
	}
	if rel, err := filepath.Rel(b.Root, file); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return filepath.ToSlash(rel)
	}
	return path.Clean(filepath.ToSlash(file))
}

// covers reports whether a pattern is about a file: by its name alone if the
// pattern holds no slash, else by its whole path. A pattern for a folder covers
// what is in it.
func (b *Book) covers(pattern, place string) bool {
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok && b.Home != "" {
		pattern = b.place(filepath.Join(b.Home, rest))
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if folder, ok := strings.CutSuffix(pattern, "/"); ok {
		pattern = folder + "/**"
	}
	if !strings.Contains(pattern, "/") {
		return matchFold(pattern, path.Base(place))
	}
	if !path.IsAbs(pattern) && path.IsAbs(place) {
		pattern = "**/" + pattern
	}
	return matchFold(pattern, place)
}

// matchFold matches whatever the case: on some file systems .ENV is .env.
func matchFold(pattern, name string) bool {
	ok, err := doublestar.Match(strings.ToLower(pattern), strings.ToLower(name))
	return err == nil && ok
}

// secrets are files that usually hold keys. They are asked about even where
// reading is allowed.
var secrets = []string{
	".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_*_sk", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd",
	".npmrc", ".pypirc", "credentials.json", "service-account*.json", "secrets.y*ml", "*.tfvars",
	".ssh/**", ".gnupg/**", ".aws/credentials", ".aws/config", ".kube/config", ".docker/config.json", ".config/gcloud/**", ".config/gh/hosts.yml",
	".azure/**", ".coder/config.json",
	"/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssl/private/**", "/proc/*/environ", "/proc/*/mem", "/dev/sd*", "/dev/nvme*", "/dev/vd*", "/dev/mem",
}

// samples are files named like secrets that hold none.
var samples = []string{".example", ".sample", ".template", ".dist", ".defaults"}

// isSecret reports whether a file usually holds keys.
func (b *Book) isSecret(place string) bool {
	name := strings.ToLower(path.Base(place))
	if strings.HasSuffix(name, ".pub") || slices.ContainsFunc(samples, func(s string) bool { return strings.HasSuffix(name, s) }) {
		return false
	}
	if place == ".coder/config.json" {
		return false // the project's own settings; only the user's hold keys
	}
	return slices.ContainsFunc(secrets, func(s string) bool { return b.covers(s, place) || b.covers("**/"+s, place) })
}
