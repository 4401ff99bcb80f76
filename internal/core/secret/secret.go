// Package secret tells what usually holds keys: files by their names, known
// places of a home and of the system, variables of an environment. Such a thing
// is never read without the person's leave, neither by the model, nor by the
// commands it runs, nor by the program on its own account.
package secret

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// names are the names of files that usually hold keys, wherever they lie, in
// lower case. A star stands for anything, at one end only.
var names = []string{
	".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials",
	".htpasswd", ".npmrc", ".yarnrc.yml", ".pypirc", "credentials.json", "service-account*", "secrets.yml", "secrets.yaml", "*.tfvars", "*.tfvars.json",
	".vault-token", ".vault_pass", "*.agekey", ".terraformrc", ".bash_history", ".zsh_history", ".python_history", ".node_repl_history",
	".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history",
}

// ends are files and folders that usually hold keys by the end of their path.
var ends = []string{
	".ssh/**", ".gnupg/**", ".password-store/**", ".aws/**", ".kube/config", ".docker/config.json", ".azure/**",
	".config/gcloud/**", ".config/gh/hosts.yml", ".coder/config.json", ".coder/key", ".cargo/credentials", ".cargo/credentials.toml",
	".codex/auth.json", ".claude/.credentials.json",
	"/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssl/private/**", "/proc/*/environ", "/proc/*/mem", "/dev/sd*", "/dev/nvme*", "/dev/vd*", "/dev/mem",
}

// samples are the ends of names that are like those of secrets and hold none.
var samples = []string{".example", ".sample", ".template", ".dist", ".defaults", ".pub"}

// Is reports whether a file usually holds keys. A relative path is one below
// the workspace, whose own settings, unlike the person's, hold none. Case does
// not count: on some file systems .ENV is .env.
func Is(file string) bool {
	place := strings.ToLower(Direct(filepath.ToSlash(file)))
	if place == ".coder/config.json" || slices.ContainsFunc(samples, func(end string) bool { return strings.HasSuffix(place, end) }) {
		return false
	}
	return named(path.Base(place)) || ended(place) || known(place)
}

// Direct is the path behind detours by way of /proc: the root and the working
// directory of a process lead back to where one was.
func Direct(file string) string {
	for file = path.Clean(file); ; {
		rest, ok := strings.CutPrefix(file, "/proc/")
		if !ok {
			return file
		}
		_, rest, _ = strings.Cut(strings.Replace(rest, "/task/", "", 1), "/")
		inner, isRoot := strings.CutPrefix(rest, "root")
		if !isRoot || inner != "" && inner[0] != '/' {
			return file
		}
		file = path.Clean("/" + inner)
	}
}

// named reports whether a file's own name is that of a secret, or of what an
// editor or a person kept of one. It is asked of every file of a workspace.
func named(name string) bool {
	if matches(name) {
		return true
	}
	original := copied(name)
	return original != name && (matches(original) || matches(strings.TrimPrefix(original, ".")))
}

// copied is the name of the file that another is a copy of, as far as its name
// tells.
func copied(name string) string {
	switch n := len(name); {
	case n > 2 && name[0] == '#' && name[n-1] == '#':
		return name[1 : n-1]
	case n > 1 && name[n-1] == '~':
		return name[:n-1]
	case strings.HasPrefix(name, ".#"):
		return name[2:]
	}
	switch end := path.Ext(name); end {
	case ".bak", ".old", ".orig", ".save", ".backup", ".copy", ".swp", ".swo", ".swn", ".tmp":
		return strings.TrimSuffix(name, end)
	}
	return name
}

func matches(name string) bool {
	if exact[name] {
		return true
	}
	for _, s := range suffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

var exact, suffixes, prefixes = sorted(names)

func sorted(names []string) (exact map[string]bool, suffixes, prefixes []string) {
	exact = make(map[string]bool)
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, "*"):
			suffixes = append(suffixes, n[1:])
		case strings.HasSuffix(n, "*"):
			prefixes = append(prefixes, n[:len(n)-1])
		default:
			exact[n] = true
		}
	}
	return exact, suffixes, prefixes
}

func ended(place string) bool {
	if !strings.Contains(place, "/") {
		return false
	}
	return slices.ContainsFunc(ends, func(pattern string) bool {
		if !path.IsAbs(pattern) {
			pattern = "**/" + pattern
		}
		ok, err := doublestar.Match(pattern, place)
		return err == nil && ok
	})
}

// InTree reports whether something in a workspace is to be hidden from commands
// by its name, given from there. Keys that lie where tests and packages keep
// theirs are no secrets: commands need them, and everybody has them.
func InTree(rel string, dir bool) bool {
	name := strings.ToLower(path.Base(rel))
	if dir {
		return folders[name]
	}
	if !named(name) && !ended(strings.ToLower(rel)) || !Is(rel) {
		return false
	}
	return !IsKeyFile(rel) || !slices.ContainsFunc(strings.Split(path.Dir(rel), "/"), func(part string) bool { return public[strings.ToLower(part)] })
}

// folders are those of which everything is a secret.
var folders = map[string]bool{".ssh": true, ".gnupg": true, ".password-store": true, ".aws": true, ".azure": true}

// public are folders whose keys are there for everybody.
var public = map[string]bool{
	"testdata": true, "test": true, "tests": true, "fixtures": true, "__fixtures__": true, "node_modules": true, "vendor": true, "site-packages": true,
	"third_party": true, "examples": true,
}

// Bulky reports whether a folder of a workspace holds what was installed or
// made, by the thousand: nobody keeps a secret there, and it is not looked
// through.
func Bulky(rel string) bool { return bulky[path.Base(rel)] }

var bulky = map[string]bool{".git": true, "node_modules": true, ".venv": true, "venv": true, "site-packages": true, "__pycache__": true, ".hg": true, ".svn": true}

// IsKeyFile reports whether a file's name says that it may hold a key, or else
// something public such as a certificate: only its content tells.
func IsKeyFile(file string) bool {
	switch strings.ToLower(path.Ext(file)) {
	case ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".ppk":
		return true
	}
	return strings.HasPrefix(strings.ToLower(path.Base(file)), "id_")
}

// IsPublic reports whether the beginning of what a name says may be a key is
// something else: certificates and public keys are not secret.
func IsPublic(name string, head []byte) bool {
	text := string(head)
	switch strings.ToLower(path.Ext(name)) {
	case ".pem", ".key":
		return !strings.Contains(text, "PRIVATE KEY") && (strings.Contains(text, "BEGIN CERTIFICATE") || strings.Contains(text, "BEGIN PUBLIC KEY"))
	}
	return false
}
