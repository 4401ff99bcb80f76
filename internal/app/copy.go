package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
)

// copiers are the programs that put text into the clipboard, by the variable that says that
// they can.
var copiers = []struct {
	variable string
	command  []string
}{
	{"WAYLAND_DISPLAY", []string{"wl-copy"}},
	{"DISPLAY", []string{"xclip", "-selection", "clipboard"}},
	{"", []string{"pbcopy"}},
}

const (
	copyTime    = 5 * time.Second
	longestCopy = 74994 // bytes that terminals take
)

// copyText puts text into the clipboard: with a program of the system, and over SSH or without
// such a program through the terminal.
func (a *Session) copyText(ctx context.Context, text string) (how string, err error) {
	ctx, stop := context.WithTimeout(ctx, copyTime)
	defer stop()
	if a.Env.Getenv("SSH_TTY")+a.Env.Getenv("SSH_CONNECTION") == "" {
		for _, c := range copiers {
			if _, err := a.Door().Find(c.command[0]); err != nil || c.variable != "" && a.Env.Getenv(c.variable) == "" {
				continue
			}
			cmd := a.Door().Command(ctx, c.command[0], c.command[1:]...)
			cmd.Stdin = strings.NewReader(text)
			if cmd.Run() == nil {
				return "with " + c.command[0], nil
			}
		}
	}
	switch {
	case a.screen.Copy == nil:
		return "", errors.New("install wl-copy (wl-clipboard), xclip or pbcopy to copy")
	case len(text) > longestCopy:
		return "", fmt.Errorf("%d bytes are too many to copy through the terminal", len(text))
	}
	a.screen.Copy("\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\x1b\\")
	return "through the terminal (OSC 52), if it allows that", nil
}
