package keychain_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"coder/internal/host/keychain"
)

// TestAKeyInAFileIsReadableByTheUserAlone and goes to the server it was entered for.
func TestAKeyInAFileIsReadableByTheUserAlone(t *testing.T) {
	s := keychain.Store{Dir: filepath.Join(t.TempDir(), "api-keys"), Getenv: func(string) string { return "" }}
	place, err := s.Save(t.Context(), "https://api.example.org/v1", "sk-mine")
	if err != nil || place != keychain.File {
		t.Fatal(place, err)
	}
	files, err := os.ReadDir(s.Dir)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	for address, want := range map[string]string{
		"https://api.example.org/v1": "sk-mine", "https://API.example.org/other": "sk-mine",
		"http://api.example.org/v1": "", "https://api.example.org:8443/v1": "", "https://example.org/v1": "",
	} {
		if key, err := s.Load(t.Context(), keychain.File, address); key != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", address, key, err)
		}
	}
	if key, err := s.Load(t.Context(), keychain.System, "https://api.example.org/v1"); key != "" || err == nil {
		t.Errorf("without a keychain: %q, %v", key, err)
	}
}

// TestTheSecretServiceKeepsKeys uses a real keychain, where gnome-keyring is installed: one that is unlocked, and one
// that nobody can unlock, in whose place a file is used.
func TestTheSecretServiceKeepsKeys(t *testing.T) {
	const address, key, placeVar = "https://api.example.org/v1", "sk-mine", "KEYCHAIN_TEST_PLACE"
	if place := os.Getenv(placeVar); place != "" { // inside the session that is started below
		s := keychain.Store{Dir: filepath.Join(t.TempDir(), "api-keys"), Getenv: os.Getenv}
		saved, err := s.Save(t.Context(), address, key)
		if err != nil || string(saved) != place {
			t.Fatalf("saved in %q, not in %q: %v", saved, place, err)
		}
		if got, err := s.Load(t.Context(), saved, address); got != key || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := os.Stat(s.Dir); os.IsNotExist(err) != (saved == keychain.System) {
			t.Errorf("the folder of files: %v", err)
		}
		return
	}
	for _, program := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	for place, unlock := range map[keychain.Location]string{
		keychain.System: "printf pass | gnome-keyring-daemon --unlock --components=secrets >/dev/null && ", keychain.File: "",
	} {
		home := t.TempDir()
		c := exec.CommandContext(t.Context(), "dbus-run-session", "--", "sh", "-c",
			unlock+`"$0" -test.run="^$1$"`, os.Args[0], t.Name())
		c.Env = append(os.Environ(), placeVar+"="+string(place), "HOME="+home, "XDG_DATA_HOME="+home,
			"XDG_CACHE_HOME="+home, "XDG_RUNTIME_DIR="+home, "DISPLAY=")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", place, err, out)
		}
	}
}
