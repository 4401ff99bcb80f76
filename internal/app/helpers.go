package app

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/lsp"
	"coder/internal/host/program"
	"coder/internal/policy/confine"
	"coder/internal/policy/trust"
)

// languageServers returns the options for language servers: they run only in
// trusted folders, confined, without network, and can write only to their
// own cache, separate from the builds' cache, which they must not change.
func (a *Session) languageServers(work context.Context) lsp.Options {
	cache := ""
	if dir := a.Env.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		cache = filepath.Join(dir, "coder", "lsp")
	} else if home := a.Env.Getenv("HOME"); filepath.IsAbs(home) {
		cache = filepath.Join(home, ".cache", "coder", "lsp")
	}
	env := slices.DeleteFunc(a.ChildEnv(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(serverEnvVars, name) && !strings.HasPrefix(name, "LC_")
	})
	return lsp.Options{
		Root: a.Root, Env: env, Servers: a.servers, Cache: cache, Program: "coder", Version: Version,
		Hides: a.hides,
		CheckAllowed: func() error { // they obey the folder's settings, and run tools that these name
			state, err := a.Trust.StateOf(a.Root)
			if err == nil && state == trust.Trusted {
				return nil
			}
			return message.Errorf("this folder is %s, and language servers start only in trusted folders: run /trust or coder trust first", state)
		},
		Confine: func(cmd *program.Cmd) error {
			_, err := a.confiner.Helper(work, cmd, confine.Helper{OnlyWrite: true, Required: true, Write: []string{cache}})
			return err
		},
	}
}

// serverEnvVars are the variables that language servers and their tools need: locations and the
// target platform. All others are withheld, because nobody checks what a server does with them.
var serverEnvVars = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODER_WORKSPACE",
	"GOPATH", "GOROOT", "GOMODCACHE", "GOENV", "GOFLAGS", "GOOS", "GOARCH", "GOARM", "GOAMD64", "GOEXPERIMENT", "GOWORK",
	"GO111MODULE",
	"CGO_ENABLED", "CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_CXXFLAGS", "CGO_LDFLAGS", "CC", "CXX", "PKG_CONFIG_PATH",
	"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUST_SRC_PATH",
	"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "SDKROOT",
	"DEVELOPER_DIR",
	"NVM_DIR", "VOLTA_HOME", "PNPM_HOME", "FNM_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "PYENV_ROOT",
	"NODENV_ROOT", "JAVA_HOME",
	"NIX_PROFILES", "LOCALE_ARCHIVE", "GORACE",
}

const (
	pdfTimeout = 20 * time.Second
	maxPDFText = 8 << 20 // bytes
)

// pdfReader returns a function that extracts text from PDFs with
// pdftotext, if it is installed and can be confined: PDFs are not trusted.
func (a *Site) pdfReader(confiner *confine.Confiner) func(context.Context, []byte) (string, error) {
	return func(ctx context.Context, pdf []byte) (string, error) {
		if _, err := a.launcher.Find("pdftotext"); err != nil {
			return "", message.Errorf("install pdftotext (poppler-utils) to read PDFs: %w", err)
		}
		ctx, cancel := context.WithTimeout(ctx, pdfTimeout)
		defer cancel()
		env := []string{"PATH=" + a.Env.Getenv("PATH"), "LC_ALL=C.UTF-8"}
		cmd := a.launcher.WithEnv(env).Command(ctx, "pdftotext", "-q", "-enc", "UTF-8", "-layout", "-", "-")
		cmd.Dir, cmd.Stdin = "/", bytes.NewReader(pdf)
		if confined, err := confiner.Helper(ctx, cmd, confine.Helper{ReadOnly: true}); err != nil || !confined {
			return "", errors.Join(errors.New("pdftotext cannot be confined here"), err)
		}
		out := &program.Bounded{Most: maxPDFText}
		cmd.Stdout = out
		if err := cmd.Run(); err != nil {
			return "", message.Errorf("run pdftotext: %w", err)
		}
		text := strings.Trim(strings.ToValidUTF8(out.String(), "\ufffd"), "\f\n ")
		if text == "" {
			return "", errors.New("pdftotext found no text; the pages may be images")
		}
		return text + "\n", nil
	}
}
