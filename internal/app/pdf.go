package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"coder/internal/host/workspace"
	"coder/internal/policy/confine"
	"coder/internal/tool/files"
)

const (
	pdfPatience = 20 * time.Second
	maxPDFText  = 8 << 20 // bytes
)

// pdfReader takes the text from PDFs with pdftotext where it is installed and
// can be confined: a PDF is written by strangers.
func (a *App) pdfReader(ws *workspace.Workspace, confiner *confine.Confiner) func(context.Context, []byte) (string, error) {
	find := sync.OnceValue(func() string { return ws.Program(a.Env.Getenv("PATH"), "pdftotext") })
	return func(ctx context.Context, pdf []byte) (string, error) {
		program := find()
		if program == "" {
			return "", errors.New("pdftotext is not installed")
		}
		ctx, cancel := context.WithTimeout(ctx, pdfPatience)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, "-q", "-enc", "UTF-8", "-layout", "-", "-")
		cmd.Dir, cmd.Env, cmd.Stdin = "/", []string{"PATH=" + a.Env.Getenv("PATH"), "LC_ALL=C.UTF-8"}, bytes.NewReader(pdf)
		if confined, err := confiner.Helper(ctx, cmd, confine.Helper{ReadOnly: true}); err != nil || !confined {
			return "", errors.Join(errors.New("pdftotext cannot be confined here"), err)
		}
		out := &bounded{most: maxPDFText}
		cmd.Stdout = out
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("run pdftotext: %w", err)
		}
		text := strings.Trim(strings.ToValidUTF8(out.String(), "\ufffd"), "\f\n ")
		if text == "" {
			return "", errors.New("pdftotext found no text")
		}
		return text + "\n", nil
	}
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, b.most-b.Len()))])
	return len(p), nil
}

// readOptions are what the tool that reads files may make use of.
func (a *App) readOptions(ws *workspace.Workspace, t *toolkit) files.Options {
	return files.Options{Vision: a.sees(), PDF: a.pdfReader(ws, t.confiner)}
}
