package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"coder/internal/host/program"
)

// Two versions of a release for this system, made once for all ways of installing.
const before, after = "1.2.3", "1.2.4"

// place is a root made for one way of installing: nothing of yours is in it.
type place struct {
	t    *testing.T
	dir  string   // the prefix, or the root of the system
	env  []string // of what runs there
	into []string // what runs before a command to be in it
}

// root is a new place. The way is skipped with a word where a tool is missing.
func root(t *testing.T, tools ...string) *place {
	t.Helper()
	for _, tool := range tools {
		if !program.IsInstalled(tool) {
			t.Skipf("%s is missing, so this way was not tried", tool)
		}
	}
	home := t.TempDir()
	return &place{t: t, dir: t.TempDir(), env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "TMPDIR=" + t.TempDir(), "no_proxy=*"}}
}

// run runs a command there and returns what it prints. A command that fails ends the test.
func (p *place) run(name string, args ...string) string {
	p.t.Helper()
	words := append(append(append([]string{}, p.into...), name), args...)
	file, err := program.LookPath(words[0])
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := program.TrustedCommand(p.t.Context(), file, words[1:]...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// works checks a program that was installed: both names, a whole demo, and what it says
// of updating and removing itself. The second name is not looked for where it is "".
func (p *place) works(coder, second, version, update, remove string) {
	p.t.Helper()
	for _, name := range []string{coder, second} {
		if name == "" {
			continue
		}
		if out := p.run(name, "version"); !strings.HasPrefix(out, "coder "+version+" ") {
			p.t.Errorf("%s is %s", name, out)
		}
	}
	p.demo(coder)
	if out := p.run(coder, "update"); !strings.Contains(out, update) {
		p.t.Errorf("coder update says %s", out)
	}
	if out := p.run(coder, "uninstall"); !strings.Contains(out, remove) {
		p.t.Errorf("coder uninstall says %s", out)
	}
}

// withoutGo is the place with a PATH that has no Go: the demo would test its project with
// it, and compile the library of Go for that.
func (p *place) withoutGo() *place {
	without := *p
	without.env = slices.Clone(p.env)
	for i, kv := range without.env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
				_, err := os.Stat(filepath.Join(dir, "go"))
				return err == nil
			})
			without.env[i] = "PATH=" + strings.Join(dirs, ":")
		}
	}
	return &without
}

// demo plays a whole turn.
func (p *place) demo(coder string) {
	p.t.Helper()
	if out := p.withoutGo().run(coder, "demo"); !strings.Contains(out, "intact") {
		p.t.Errorf("the demo ended with %s", out)
	}
}

// has checks which files are there, and gone which are not.
func (p *place) has(there bool, names ...string) {
	p.t.Helper()
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(p.dir, name)); (err == nil) != there {
			p.t.Errorf("%s: %v", name, err)
		}
	}
}

var share = []string{"share/man/man1/coder.1", "share/bash-completion/completions/coder", "share/zsh/site-functions/_coder", "share/fish/vendor_completions.d/coder.fish"}

var seconds = []string{"share/man/man1/coder-agent.1", "share/bash-completion/completions/coder-agent", "share/fish/vendor_completions.d/coder-agent.fish"}

func below(dir string, names []string) (all []string) {
	for _, name := range names {
		all = append(all, filepath.Join(dir, name))
	}
	return all
}

// TestInstallFromNothing installs in every way that there is a tool for, in places made for
// it, up to a demo, then updates and removes: make install-test.
func TestInstallFromNothing(t *testing.T) {
	if os.Getenv("CODER_INSTALL_TEST") == "" {
		t.Skip("set CODER_INSTALL_TEST: make install-test")
	}
	t.Chdir("../..")
	work := t.TempDir()
	served := filepath.Join(work, "newest") // the folder that programs look in
	server := httptest.NewServer(http.FileServer(http.Dir(served)))
	defer server.Close()
	key := filepath.Join(work, "key.pem")
	if err := newKey(key); err != nil {
		t.Fatal(err)
	}
	made := make(map[string]string)
	for _, version := range []string{before, before + " again", after} {
		v, _, _ := strings.Cut(version, " ")
		r := release{version: v, out: filepath.Join(work, version), address: server.URL, targets: []target{{runtime.GOOS, runtime.GOARCH}}, partial: true}
		if err := r.make(context.Background(), key, ""); err != nil {
			t.Fatal(err)
		}
		made[version] = r.out
	}
	for _, name := range files(t, made[before]) {
		one, _ := os.ReadFile(filepath.Join(made[before], name))
		if two, err := os.ReadFile(filepath.Join(made[before+" again"], name)); err != nil || !bytes.Equal(one, two) {
			t.Errorf("made twice, %s differs: %v", name, err)
		}
	}
	serve := func(t *testing.T, version string) {
		t.Helper()
		_ = os.Remove(served)
		if err := os.Symlink(made[version], served); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("archive", func(t *testing.T) { serve(t, before); installArchive(t, server.URL, func() { serve(t, after) }) })
	t.Run("clone", installClone)
	t.Run("deb", func(t *testing.T) { installDeb(t, made) })
	t.Run("rpm", func(t *testing.T) { installRPM(t, made) })
	t.Run("npm", func(t *testing.T) { installNPM(t, made) })
	t.Run("pip", func(t *testing.T) { installPip(t, made) })
}

func installArchive(t *testing.T, address string, publish func()) {
	p := root(t, "sh", "tar", "curl")
	name := "coder_" + before + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	p.run("sh", "install.sh", address+"/"+name, "--prefix", p.dir)
	p.has(true, append(share, seconds...)...)
	coder := filepath.Join(p.dir, "bin", "coder")
	p.works(coder, coder+"-agent", before, "coder "+before+" is the newest version.", "rm -rf bin/coder ")
	publish()
	if out := p.run(coder, "update", "--check"); !strings.Contains(out, "coder "+after+" is available") {
		t.Errorf("it says %s", out)
	}
	if out := p.run(coder, "update"); !strings.Contains(out, "Updated coder "+before+" to "+after) {
		t.Errorf("it says %s", out)
	}
	p.works(coder, coder+"-agent", after, "coder "+after+" is the newest version.", "rm -rf bin/coder ")
	p.run(coder, "update", "--rollback")
	if out := p.run(coder, "version"); !strings.HasPrefix(out, "coder "+before+" ") {
		t.Errorf("rolled back, it is %s", out)
	}
	for line := range strings.Lines(p.run(coder, "uninstall")) {
		if strings.HasPrefix(line, "    cd ") {
			p.run("sh", "-c", line)
		}
	}
	if left := files(t, p.dir); len(left) > 0 {
		t.Errorf("removed, it left %q", left)
	}
}

// installClone is make install and go install in a clone, with your module and build caches:
// from cold ones both take minutes.
func installClone(t *testing.T) {
	p := root(t, "git", "make", "go")
	clone := filepath.Join(p.dir, "clone")
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"} {
		p.env = append(p.env, name+"="+strings.TrimSpace(p.ours("go", "env", name)))
	}
	p.run("git", "clone", "-q", ".", clone)
	p.dir = filepath.Join(p.dir, "prefix")
	p.run("make", "-C", clone, "install", "PREFIX="+p.dir, "VERSION="+before)
	p.has(true, append(share, seconds...)...)
	coder := filepath.Join(p.dir, "bin", "coder")
	p.works(coder, coder+"-agent", before, "git pull && make install", "make uninstall")
	p.run("make", "-C", clone, "uninstall", "PREFIX="+p.dir)
	p.has(false, append(append([]string{"bin/coder", "bin/coder-agent", "share/coder/installed"}, share...), seconds...)...)
	bin := filepath.Join(p.dir, "gobin")
	p.env = append(p.env, "GOBIN="+bin, "CGO_ENABLED=0")
	p.run("go", "-C", clone, "install", "./cmd/coder")
	p.demo(filepath.Join(bin, "coder"))
	if out := p.run(filepath.Join(bin, "coder"), "update"); !strings.Contains(out, "go install ./cmd/coder") {
		t.Errorf("coder update says %s", out)
	}
}

// ours runs a command as you would.
func (p *place) ours(name string, args ...string) string {
	own := *p
	own.env = os.Environ()
	return own.run(name, args...)
}

// installDeb uses a Debian that is made for it where debootstrap is, as root, or a copy of
// the one in the folder CODER_INSTALL_DEBIAN. Elsewhere dpkg
// unpacks into a folder, without looking at what the package needs.
func installDeb(t *testing.T, made map[string]string) {
	p := root(t, "dpkg")
	coder, install, remove := "/usr/bin/coder", []string{"dpkg", "-i"}, []string{"dpkg", "--purge"}
	if program.IsInstalled("debootstrap") && program.IsInstalled("chroot") && os.Geteuid() == 0 {
		if made := os.Getenv("CODER_INSTALL_DEBIAN"); made != "" {
			p.ours("cp", "-a", made+"/.", p.dir)
		} else {
			p.ours("debootstrap", "--variant=minbase", "stable", p.dir)
		}
		proc := filepath.Join(p.dir, "proc") // by which a program knows its own path
		if err := syscall.Mount("proc", proc, "proc", 0, ""); err != nil {
			t.Skipf("cannot mount %s: %v", proc, err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(proc, syscall.MNT_DETACH) })
		p.into = []string{"chroot", p.dir}
		p.env = []string{"HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TERM=dumb"}
	} else {
		t.Log("without debootstrap and root, dpkg unpacks into a folder")
		for _, dir := range []string{"info", "updates", "triggers"} {
			if err := os.MkdirAll(filepath.Join(p.dir, "var/lib/dpkg", dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		coder = p.dir + coder
		option := []string{"dpkg", "--root=" + p.dir, "--force-not-root", "--force-depends", "--force-script-chrootless", "--log=/dev/null"}
		install, remove = append(option, "-i"), append(option, "--purge")
	}
	for _, version := range []string{before, after} {
		file := "coder-agent_" + version + "_" + runtime.GOARCH + ".deb"
		text, err := os.ReadFile(filepath.Join(made[version], file))
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(p.dir, file)
		if err := os.WriteFile(at, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if p.into != nil {
			at = "/" + file
		}
		p.run(install[0], append(install[1:], at)...)
		p.has(true, append(below("usr", append(share, seconds...)), "usr/share/doc/coder-agent/copyright")...)
		p.works(coder, coder+"-agent", version, "sudo apt install ./PACKAGE.deb", "sudo apt remove coder-agent")
	}
	p.run(remove[0], append(remove[1:], "coder-agent")...)
	p.has(false, append(below("usr", append(share, seconds...)), "usr/bin/coder", "usr/bin/coder-agent", "usr/share/coder/installed")...)
}

func installRPM(t *testing.T, made map[string]string) {
	p := root(t, "rpm")
	cpu := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	coder := filepath.Join(p.dir, "usr/bin/coder")
	p.run("rpm", "--root="+p.dir, "--initdb")
	for _, version := range []string{before, after} {
		p.run("rpm", "--root="+p.dir, "--nodeps", "-U", filepath.Join(made[version], "coder-agent-"+version+"-1."+cpu+".rpm"))
		p.has(true, below("usr", append(share, seconds...))...)
		p.works(coder, coder+"-agent", version, "sudo rpm -U PACKAGE.rpm", "sudo rpm -e coder-agent")
	}
	p.run("rpm", "--root="+p.dir, "--nodeps", "-e", "coder-agent")
	p.has(false, append(below("usr", append(share, seconds...)), "usr/bin/coder", "usr/bin/coder-agent", "usr/share/coder/installed")...)
}

// installNPM installs from a registry on this machine, as npm does from its own.
func installNPM(t *testing.T, made map[string]string) {
	p := root(t, "npm", "node")
	registry := serveNPM(t, made)
	npm := func(args ...string) {
		t.Helper()
		p.run("npm", append(args, "-g", "--prefix", p.dir, "--registry", registry, "--no-audit", "--no-fund", "--prefer-online")...)
	}
	coder := filepath.Join(p.dir, "bin", "coder")
	npm("install", "coder-agent@"+before)
	p.works(coder, coder+"-agent", before, "npm update -g coder-agent", "npm uninstall -g coder-agent")
	npm("update", "coder-agent")
	p.works(coder, coder+"-agent", after, "npm update -g coder-agent", "npm uninstall -g coder-agent")
	npm("uninstall", "coder-agent")
	p.has(false, "bin/coder", "bin/coder-agent", "lib/node_modules/coder-agent")
}

// serveNPM answers as a registry that has the packages of all releases.
func serveNPM(t *testing.T, made map[string]string) (address string) {
	t.Helper()
	type object = map[string]any
	packages, archives := make(map[string]object), make(map[string][]byte)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, version := range []string{before, after} {
		for _, name := range files(t, made[version]) {
			if !strings.HasPrefix(name, "npm-") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(made[version], name))
			if err != nil {
				t.Fatal(err)
			}
			archives[name] = text
			manual := manualOf(t, text)
			sum := sha512.Sum512(text)
			manual["dist"] = object{"tarball": server.URL + "/-/" + name, "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
			id := manual["name"].(string)
			if packages[id] == nil {
				packages[id] = object{"name": id, "versions": object{}}
			}
			packages[id]["versions"].(object)[version] = manual
			packages[id]["dist-tags"] = object{"latest": version}
		}
	}
	mux.HandleFunc("GET /-/{file}", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(archives[r.PathValue("file")]) })
	mux.HandleFunc("GET /{name}", func(w http.ResponseWriter, r *http.Request) {
		if p, ok := packages[r.PathValue("name")]; ok {
			_ = json.NewEncoder(w).Encode(p)
			return
		}
		http.NotFound(w, r)
	})
	return server.URL
}

// manualOf reads the package.json of an npm package.
func manualOf(t *testing.T, packed []byte) (manual map[string]any) {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	tr := tar.NewReader(zr)
	h, err := tr.Next()
	if err != nil || h.Name != "package/package.json" {
		t.Fatalf("the package begins with %v: %v", h, err)
	}
	text, err := io.ReadAll(tr)
	if err := errors.Join(err, json.Unmarshal(text, &manual)); err != nil {
		t.Fatal(err)
	}
	return manual
}

func installPip(t *testing.T, made map[string]string) {
	p := root(t, "python3")
	p.ours("python3", "-m", "venv", p.dir)
	pip := func(args ...string) {
		t.Helper()
		p.run(filepath.Join(p.dir, "bin", "python3"), append([]string{"-m", "pip", "-q", "--disable-pip-version-check"}, args...)...)
	}
	coder := filepath.Join(p.dir, "bin", "coder")
	for _, version := range []string{before, after} {
		pip("install", "--upgrade", "--no-index", "--find-links", made[version], "coder-agent")
		p.has(true, share...)
		p.works(coder, coder+"-agent", version, "pip install --upgrade coder-agent", "pip uninstall coder-agent")
	}
	pip("uninstall", "-y", "coder-agent")
	p.has(false, append([]string{"bin/coder", "bin/coder-agent", "share/coder/installed"}, share...)...)
}
