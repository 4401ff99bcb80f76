package secret

import "testing"

func TestSecretsAreKnownByTheirNames(t *testing.T) {
	for file, want := range map[string]bool{
		".env": true, "sub/.ENV": true, ".env.local": true, "prod.env": true, "./a/../.env": true,
		"/home/u/.ssh/id_rsa": true, ".ssh/known_hosts": true, "deploy/server.pem": true, ".aws/credentials": true, "x/.aws/config": true,
		"/home/u/.coder/config.json": true, "sub/.coder/config.json": true, "/proc/self/environ": true, "/proc/1/environ": true, "/etc/shadow": true,

		".coder/config.json": false, ".env.example": false, "id_rsa.pub": false, "README.md": false, "environment.go": false,
		"aws/config": false, "etc/shadow": false, "": false,
	} {
		if got := Is(file); got != want {
			t.Errorf("%q: %v", file, got)
		}
	}
}
