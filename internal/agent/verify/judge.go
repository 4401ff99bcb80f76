package verify

import (
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/clip"
)

// CheckOutcome is what a finished check says about the code.
type CheckOutcome string

// The outcomes. After Failed, a repair makes sense; after Environment
// it does not, because the check says nothing about the code.
const (
	OutcomePassed      CheckOutcome = "passed"
	OutcomeFailed      CheckOutcome = "failed"
	OutcomeEnvironment CheckOutcome = "environment"
)

// Verdict is an outcome and, unless it is Passed, its reason.
type Verdict struct {
	Outcome CheckOutcome
	Reason  string
}

// machineExitCodes maps exit codes caused by the machine and not by the code to reasons.
var machineExitCodes = map[int]string{
	124: "the command ran out of time",
	125: "the command could not be started",
	126: "the command is not executable",
	127: "the command is not installed",
	130: "the command was interrupted",
	137: "the command was killed",
	143: "the command was terminated",
}

// failureSigns are signs of tests that ran and failed. They take precedence over anything that tests print.
var failureSigns = []string{
	"--- FAIL", "FAIL\t", "[build failed]", "test result: FAILED", "error[E", "error: could not compile", "= FAILURES =",
	"AssertionError",
	"SyntaxError", "Tests run:", "Test Suites:", "Tests:", "COMPILATION ERROR", "Compilation failed", " failing", "✕",
	"not ok ",
}

// environmentSigns are signs that the check was impossible here.
var environmentSigns = []struct{ sign, reason string }{
	{"command not found", "the command is not installed"},
	{"executable file not found", "the command is not installed"},
	{"is not recognized as an internal or external command", "the command is not installed"},
	{"gradlew: No such file or directory", "the command is not installed"},
	{"no module named pytest", "pytest is not installed"},
	{"no module named 'pytest'", "pytest is not installed"},
	{"gotoolchain", "the toolchain does not fit"},
	{"toolchain not available", "the toolchain does not fit"},
	{"cannot find main module", "no module found here"},
	{"could not choose a version of cargo", "no toolchain is selected"},
	{"linker `cc` not found", "no linker is installed"},
	{"java_home", "no Java is installed"},
	{"unable to locate a java runtime", "no Java is installed"},
	{"missing script", "the project has no test script"},
	{"no tests ran", "no tests"},
	{"no space left on device", "the disk is full"},
	{"disk quota exceeded", "the disk is full"},
	{"cannot allocate memory", "not enough memory"},
	{"read-only file system", "files cannot be written"},
	{"cannot connect to the docker daemon", "a service is not running"},
}

// Signs of a package manager that downloads something, and of a failed download.
var (
	downloadSigns = []string{"go: ", "npm err", "npm error", "pnpm err", "yarn", "cargo", "registry", "index",
		"pip", "maven", "gradle", "could not transfer", "download"}
	downloadFailureSigns = []string{
		"dial tcp", "i/o timeout", "could not resolve", "no such host", "network is unreachable", "enotfound", "eai_again",
		"etimedout", "econnrefused",
		"unknownhostexception", "connection refused", "connection timed out", "temporary failure in name resolution",
		"failed to get",
	}
)

// Interpret interprets a check's exit code and output.
func Interpret(exitCode int, stdout, stderr string) Verdict {
	if exitCode == 0 {
		return Verdict{Outcome: OutcomePassed}
	}
	if reason, ok := machineExitCodes[exitCode]; ok {
		return Verdict{OutcomeEnvironment, reason}
	}
	if exitCode < 0 {
		return Verdict{OutcomeEnvironment, "the command did not finish"}
	}
	output := stdout + "\n" + stderr
	if containsAny(output, failureSigns) {
		return Verdict{OutcomeFailed, fmt.Sprintf("exit code %d", exitCode)}
	}
	output = strings.ToLower(output)
	for _, b := range environmentSigns {
		if strings.Contains(output, strings.ToLower(b.sign)) {
			return Verdict{OutcomeEnvironment, b.reason}
		}
	}
	if containsAny(output, downloadSigns) && containsAny(output, downloadFailureSigns) {
		return Verdict{OutcomeEnvironment, "packages cannot be downloaded"}
	}
	return Verdict{OutcomeFailed, fmt.Sprintf("exit code %d", exitCode)}
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// maxPromptOutput limits the output in a repair prompt, in bytes.
const maxPromptOutput = 6000

// RepairPrompt returns the prompt for the model after a failed check.
func RepairPrompt(command string, v Verdict, stdout, stderr string) string {
	output := strings.TrimSpace(strings.TrimRight(stdout, "\n") + "\n" + stderr)
	return fmt.Sprintf("The check `%s` failed (%s).\n%s。\nFix the cause, not the check; the check then runs again.\n\n%s",
		command, v.Reason, FixRequest, headAndTail(output, maxPromptOutput))
}

// RefusedNotice says that a command is not on the whitelist.
func RefusedNotice(command string) string {
	return fmt.Sprintf("not run: %s is not on the whitelist of verification commands (%s)", command,
		strings.Join(allowedCommands, ", "))
}

// NotRunNotice says that no check ran, in words that are the same in every language, and then why in the user's.
func NotRunNotice(why string) []string {
	return []string{NotRunText, "automatic check not run: " + why}
}

// EnvironmentNotice says that a check gave no result, and then why.
func EnvironmentNotice(command string, v Verdict) []string {
	return []string{BestEffort, fmt.Sprintf("%s could not verify the change: %s", command, v.Reason)}
}

// headAndTail returns at most about n bytes of s: its beginning and,
// twice as long, its end, which has the summary of a test run.
func headAndTail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	head, tail := clip.Head(s, n/3), clip.Tail(s, 2*n/3)
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", head, len(s)-len(head)-len(tail), tail)
}
