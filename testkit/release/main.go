// Command release makes the archives and packages of a release: make release VERSION=1.2.3 calls it. Two runs
// on one commit make the same bytes. It publishes nothing.
package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"coder/internal/host/program"
)

// name is what packages are called; the program in them has the short name, too.
const name = "coder-agent"

// target is a system that a release is made for.
type target struct{ os, arch string }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"freebsd", "amd64"}}

// release is one release that is being made.
type release struct {
	version, out, work string
	address            string             // where programs look for newer ones; "" if nowhere
	sign               ed25519.PrivateKey // nil signs nothing
	trust              ed25519.PublicKey  // in the programs: the key of the releases after this one
	date               time.Time          // of the commit
	targets            []target
	partial            bool // not for all systems
	goTool             string

	share   []entry // manual page and completions
	notices []byte
}

func main() {
	r := release{targets: targets}
	key, next, fresh := "", "", ""
	flag.StringVar(&fresh, "new-key", "", "only make a key: a new file for it")
	flag.StringVar(&r.version, "version", "", "the version, such as 1.2.3")
	flag.StringVar(&r.out, "out", "dist", "a new folder for what is made")
	flag.StringVar(&r.address, "address", "", "the https address that the files will have, for coder update")
	flag.StringVar(&key, "key", "", "a file with an ed25519 key in PEM that signs the checksums, for coder update")
	flag.StringVar(&next, "next-key", "", "a file with the key that signs the releases after this one, if it changes")
	host := flag.Bool("host", false, "make it for this system alone")
	flag.Parse()
	if *host {
		r.targets, r.partial = []target{{runtime.GOOS, runtime.GOARCH}}, true
	}
	run := func() error { return r.make(context.Background(), key, next) }
	if fresh != "" {
		run = func() error { return newKey(fresh) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) make(ctx context.Context, key, next string) (err error) {
	if !versionForm.MatchString(r.version) {
		return fmt.Errorf("the version must be like 1.2.3 or 1.2.3-rc.1, not %q", r.version)
	}
	if r.goTool, err = program.LookPath("go"); err != nil {
		return err
	}
	if r.date, err = r.commitDate(ctx); err != nil {
		return err
	}
	if err := r.readKeys(key, next); err != nil {
		return err
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "coder-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	for _, t := range r.targets {
		if err := r.build(ctx, t); err != nil {
			return err
		}
	}
	if err := r.describe(ctx); err != nil {
		return err
	}
	for _, t := range r.targets {
		if err := r.pack(ctx, t); err != nil {
			return fmt.Errorf("%s %s: %w", t.os, t.arch, err)
		}
	}
	if err := r.nodeLauncher(); err != nil {
		return err
	}
	if !r.partial {
		if err := r.recipes(); err != nil {
			return err
		}
	}
	return r.sums()
}

// commitDate is when the commit was made that the tree stands at, or what SOURCE_DATE_EPOCH says.
func (r *release) commitDate(ctx context.Context) (time.Time, error) {
	text, seconds := os.Getenv("SOURCE_DATE_EPOCH"), int64(0)
	if text == "" {
		git, err := program.LookPath("git")
		if err != nil {
			return time.Time{}, err
		}
		out, err := r.run(ctx, nil, git, "log", "-1", "--format=%ct")
		if err != nil {
			return time.Time{}, err
		}
		text = strings.TrimSpace(string(out))
	}
	if _, err := fmt.Sscan(text, &seconds); err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// readKeys reads what signs this release and the next one, and says what follows from it.
func (r *release) readKeys(key, next string) (err error) {
	if r.sign, err = readKey(key); err != nil {
		return err
	}
	u, err := url.Parse(r.address)
	switch {
	case (r.sign == nil) != (r.address == ""):
		return errors.New("coder update needs both a key and an address: name both, or neither")
	case r.sign == nil && next != "":
		return errors.New("only a signed release can name the next key")
	case r.sign == nil:
		fmt.Fprintln(os.Stderr, "release: not signed, since no key was named: coder update of these programs changes nothing")
		return nil
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Hostname() != "127.0.0.1" ||
		strings.ContainsAny(r.address, " '\""):
		return fmt.Errorf("%s is not an https address", r.address)
	}
	r.trust = r.sign.Public().(ed25519.PublicKey)
	if after, err := readKey(next); err != nil {
		return err
	} else if after != nil {
		r.trust = after.Public().(ed25519.PublicKey)
	}
	return nil
}

// newKey makes a private key in a new file that only its owner can read.
func newKey(file string) error {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: text}), f.Close()); err != nil {
		return err
	}
	fmt.Printf("%s signs releases: keep it secret. Its public key: %s\n", file, base64.StdEncoding.EncodeToString(public))
	return nil
}

// readKey reads a private key in PEM; no file is no key.
func readKey(file string) (ed25519.PrivateKey, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is no PEM file", file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err == nil && !ok {
		err = errors.New("it is not for ed25519")
	}
	if err != nil {
		return nil, fmt.Errorf("the key in %s: %w", file, err)
	}
	return key, nil
}

// run runs a program and returns what it prints.
func (r *release) run(ctx context.Context, env []string, file string, args ...string) ([]byte, error) {
	cmd := program.TrustedCommand(ctx, file, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(file), strings.Join(args, " "), err,
			out.String()+wrong.String())
	}
	return out.Bytes(), nil
}

func (r *release) binary(t target) string { return filepath.Join(r.work, t.os+"_"+t.arch, "coder") }

func (r *release) build(ctx context.Context, t target) error {
	flags := "-s -w -buildid= -X coder/internal/app.releaseVersion=" + r.version
	if r.sign != nil {
		public := base64.StdEncoding.EncodeToString(r.trust)
		flags += " -X coder/internal/app.updateKey=" + public + " -X coder/internal/app.updateAddress=" + r.address
	}
	env := []string{"CGO_ENABLED=0", "GOOS=" + t.os, "GOARCH=" + t.arch}
	_, err := r.run(ctx, env, r.goTool, "build", "-trimpath", "-buildvcs=auto", "-ldflags", flags, "-o", r.binary(t),
		"./cmd/coder")
	return err
}

// describe has the program write its own manual page and completions, and gathers the licences.
func (r *release) describe(ctx context.Context) (err error) {
	own := target{runtime.GOOS, runtime.GOARCH}
	if !slices.Contains(r.targets, own) {
		if err := r.build(ctx, own); err != nil {
			return err
		}
	}
	for _, f := range []struct{ name, asked string }{
		{"share/bash-completion/completions/coder", "completion bash"},
		{"share/fish/vendor_completions.d/coder.fish", "completion fish"},
		{"share/man/man1/coder.1", "man"},
		{"share/zsh/site-functions/_coder", "completion zsh"},
	} {
		cmd := program.TrustedCommand(ctx, r.binary(own), strings.Fields(f.asked)...)
		cmd.Env = []string{"HOME=/nonexistent"} // nothing of whoever makes the release
		text, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("coder %s: %w", f.asked, err)
		}
		r.share = append(r.share, entry{name: f.name, mode: 0o644, data: text})
	}
	r.notices, err = r.gatherNotices(ctx)
	return err
}

// installed is the file by which coder update knows how a program was installed.
func installed(how string) entry {
	return entry{name: "share/coder/installed", mode: 0o644, data: []byte(how + "\n")}
}

// tree is what an archive or a package holds below its prefix.
func (r *release) tree(t target, how string) ([]entry, error) {
	text, err := os.ReadFile(r.binary(t))
	if err != nil {
		return nil, err
	}
	tree := append([]entry{{name: "bin/coder", mode: 0o755, data: text}}, r.share...)
	return append(tree, installed(how)), nil
}

// papers are what a release must carry about its licence.
func (r *release) papers() ([]entry, error) {
	licence, err := os.ReadFile("LICENSE")
	return []entry{{name: "LICENSE", mode: 0o644, data: licence}, {name: "NOTICE", mode: 0o644, data: r.notices}}, err
}

// pack makes all that is made for one system.
func (r *release) pack(ctx context.Context, t target) error {
	tree, err := r.tree(t, "archive")
	if err != nil {
		return err
	}
	papers, err := r.papers()
	if err != nil {
		return err
	}
	base := archiveName(r.version, t)
	var archive bytes.Buffer
	if err := writeTarGz(&archive, base, append(papers, tree...), r.date); err != nil {
		return err
	}
	if err := r.write(base+".tar.gz", archive.Bytes()); err != nil {
		return err
	}
	list, err := r.billOfMaterials(ctx, t)
	if err != nil {
		return err
	}
	err = errors.Join(r.write(base+".spdx.json", list), r.nodePackage(t, papers))
	if t.os != "freebsd" {
		err = errors.Join(err, r.wheel(t, papers))
	}
	if t.os == "linux" {
		err = errors.Join(err, r.systemPackages(ctx, t, papers))
	}
	return err
}

func (r *release) write(file string, text []byte) error {
	return os.WriteFile(filepath.Join(r.out, file), text, 0o644)
}

// sums writes the checksums of everything, and signs them if there is a key.
func (r *release) sums() error {
	made, err := os.ReadDir(r.out) // in order
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, f := range made {
		text, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), f.Name())
	}
	if err := r.write("SHA256SUMS", sums.Bytes()); err != nil || r.sign == nil {
		return err
	}
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(r.sign, sums.Bytes()))
	return r.write("SHA256SUMS.sig", []byte(signature+"\n"))
}
