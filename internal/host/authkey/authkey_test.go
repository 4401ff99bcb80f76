package authkey_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"coder/internal/host/authkey"
)

func TestWhatOneSignedAnotherOpenedLaterBelieves(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	first, err := authkey.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	later, err := authkey.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	sum := first.Sign("answer", []byte("ab"), []byte("c"))
	for _, tt := range []struct {
		name    string
		key     *authkey.Key
		purpose string
		parts   [][]byte
		want    bool
	}{
		{"the same words", later, "answer", [][]byte{[]byte("ab"), []byte("c")}, true},
		{"another purpose", later, "head", [][]byte{[]byte("ab"), []byte("c")}, false},
		{"divided otherwise", later, "answer", [][]byte{[]byte("a"), []byte("bc")}, false},
		{"fewer parts", later, "answer", [][]byte{[]byte("abc")}, false},
		{"no key", nil, "answer", [][]byte{[]byte("ab"), []byte("c")}, false},
	} {
		if got := tt.key.Verify(sum, tt.purpose, tt.parts...); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	other, err := authkey.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if other.Verify(sum, "answer", []byte("ab"), []byte("c")) {
		t.Error("another user's key believed it")
	}
	var none *authkey.Key
	if none.Verify(none.Sign("answer"), "answer") {
		t.Error("without a key an empty signature was believed")
	}
}

func TestAKeyOthersCouldReadOrChooseIsRefused(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"readable by others": func(p string) error { return os.WriteFile(p, make([]byte, 32), 0o644) },
		"cut":                func(p string) error { return os.WriteFile(p, make([]byte, 31), 0o600) },
		"a folder":           func(p string) error { return os.Mkdir(p, 0o700) },
		"a link": func(p string) error {
			target := p + ".target"
			if err := os.WriteFile(target, make([]byte, 32), 0o600); err != nil {
				return err
			}
			return os.Symlink(target, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			if err := plant(authkey.Path(home)); err != nil {
				t.Fatal(err)
			}
			if k, err := authkey.Open(home); err == nil || k != nil {
				t.Errorf("opened: %v, %v", k, err)
			}
		})
	}
}

func TestManyMakersAgreeOnOneKey(t *testing.T) {
	home := t.TempDir()
	sums := make([]string, 16)
	var wg sync.WaitGroup
	for i := range sums {
		wg.Go(func() {
			k, err := authkey.Open(home)
			if err != nil {
				t.Error(err)
			}
			sums[i] = k.Sign("x")
		})
	}
	wg.Wait()
	for _, s := range sums {
		if s != sums[0] || s == "" {
			t.Errorf("%q and %q", s, sums[0])
		}
	}
	if left, _ := filepath.Glob(filepath.Join(home, ".key-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
