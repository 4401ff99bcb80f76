package sandbox

import (
	"slices"
	"strings"

	"coder/internal/core/lazy"
)

// SetupFailed reports whether a command did not run because the helper could not confine it, and the
// helper's reason.
func SetupFailed(exitCode int, stderr string) (why string, failed bool) {
	if exitCode != SetupCode {
		return "", false
	}
	first, _, _ := strings.Cut(stderr, "\n")
	return strings.CutPrefix(first, SetupPrefix)
}

// BlockedReason guesses whether a command failed because of its limits, so that coder may ask the user to run
// it without them. It returns the evidence as text for the user, or "". A command that merely prints
// such words is mistaken for a blocked one; the result only decides whether to ask.
func BlockedReason(exitCode int, stderr string, l Limits) (why string) {
	if exitCode == 0 {
		return ""
	}
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		switch {
		case containsAny(line, readOnlyPhrases):
			return "it tried to write where it may not"
		case containsAny(line, deniedPhrases) && namesUnwritable(line, l):
			return "it tried to write where it may not"
		case !l.Network && containsAny(line, networkPhrases):
			return "it tried to use the network"
		case !l.Trace && containsAny(line, tracePhrases) && containsAny(line, append(deniedPhrases, "fatal error")):
			return "it tried to trace a process, which takes the user's approval of the command"
		case signalPattern().MatchString(line):
			return "it tried to signal another program"
		}
	}
	return ""
}

// Messages of programs, in lower case.
var (
	readOnlyPhrases = []string{"read-only file system", "erofs", "readonly filesystem", "只读文件系统"}
	deniedPhrases   = []string{"permission denied", "operation not permitted", "eacces", "eperm",
		"device or resource busy", "invalid cross-device link"}
	networkPhrases = []string{
		"network is unreachable", "enetunreach", "no route to host", "temporary failure in name resolution",
		"could not resolve",
		"couldn't resolve", "name or service not known", "no such host", "eai_again", "enotfound", "nodename nor servname",
		"getaddrinfo failed",
		"network is down", "address family not supported", "failed to lookup address", "socket: permission denied",
		"socket: operation not permitted",
	}
	tracePhrases    = []string{"ptrace", "leaksanitizer", "could not launch process", "could not trace"}
	signalPattern   = lazy.Regexp(`(?i)\bkill\b.*operation not permitted`)
	fullPathPattern = lazy.Regexp("(?:^|[\\s:'\"‘`,;(\\[=])(/[^\\s:'\"‘’`,;()\\[\\]]+)")
)

func containsAny(line string, phrases []string) bool {
	lower := strings.ToLower(line)
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(lower, phrase) })
}

// namesUnwritable reports whether a line names a full path that the command may not write. It ignores the
// folders of programs, because the sandbox does not stop programs from running.
func namesUnwritable(line string, l Limits) bool {
	for _, found := range fullPathPattern().FindAllStringSubmatch(line, -1) {
		path := found[1]
		is := func(dir string) bool { return isWithin(path, strings.TrimSuffix(dir, "/")) }
		mayWrite := slices.ContainsFunc(l.Write, is) && !slices.ContainsFunc(l.Protect, is)
		if !mayWrite && !strings.HasPrefix(path, "/bin/") && !strings.HasPrefix(path, "/usr/bin/") {
			return true
		}
	}
	return false
}
