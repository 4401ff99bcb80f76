package keychain_test

import (
	"os"
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
