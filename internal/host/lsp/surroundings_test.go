package lsp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// launcher stands for the launchers of tool-chains: it runs what a file in the
// directory, or above it, asks for, unless a variable names another.
const launcher = `#!/bin/sh
[ -n "$RUSTUP_TOOLCHAIN" ] && { echo "person's $RUSTUP_TOOLCHAIN"; exit; }
d=$PWD
while [ "$d" != / ]; do
	[ -f "$d/rust-toolchain.toml" ] && { echo "project's"; exit; }
	d=$(dirname "$d")
done
echo "person's"
`

func TestTheProjectDoesNotChooseWhatRuns(t *testing.T) {
	ws, bin, home := t.TempDir(), t.TempDir(), t.TempDir()
	link := filepath.Join(t.TempDir(), "bin")
	for _, file := range []string{filepath.Join(bin, "cargo"), filepath.Join(ws, "bin/cargo"), filepath.Join(ws, "sub/cargo")} {
		put(t, file, launcher)
		if err := os.Chmod(file, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(ws, "bin"), link); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(ws, "rust-toolchain.toml"), "[toolchain]\npath = \"evil\"\n")
	put(t, filepath.Join(home, ".rustup/settings.toml"), "default_host_triple = \"x\"\ndefault_toolchain = \"mine\"\n")
	path := "PATH=" + strings.Join([]string{"bin", ".", "", filepath.Join(ws, "bin"), link, filepath.Join(ws, "sub"), bin, "/bin", "/nowhere"}, ":")
	for _, tc := range []struct {
		name, want string
		env        []string
	}{
		{"the default of rustup", "person's mine", []string{"HOME=" + home}},
		{"no rustup", "person's stable", []string{"HOME=/nowhere"}},
		{"another home", "person's mine", []string{"HOME=/nowhere", "RUSTUP_HOME=" + filepath.Join(home, ".rustup")}},
		{"the person's choice", "person's nightly", []string{"HOME=" + home, "RUSTUP_TOOLCHAIN=nightly"}},
		{"a choice that is a place", "person's mine", []string{"HOME=" + home, "RUSTUP_TOOLCHAIN=" + ws + "/evil"}},
	} {
		o := Options{Root: ws, Env: append(tc.env, path)}
		for _, o.Cache = range []string{"", t.TempDir()} {
			dir, env, err := o.launchEnv(ws)
			if err != nil {
				t.Fatal(err)
			}
			if o.Cache != "" && isWithin(ws, dir) {
				t.Errorf("%s: started in %s", tc.name, dir)
			}
			cmd := exec.Command("/bin/sh", "-c", "cd "+ws+" && cargo; echo $GOTOOLCHAIN $RUSTC_WRAPPER; echo $PATH")
			cmd.Dir, cmd.Env = dir, env
			out, err := cmd.CombinedOutput()
			if want := tc.want + "\nlocal\n" + bin + ":/bin\n"; err != nil || string(out) != want {
				t.Errorf("%s: %q, %v, want %q", tc.name, out, err, want)
			}
		}
	}
}
