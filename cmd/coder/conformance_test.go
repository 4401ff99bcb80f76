package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// suiteDir is where make tools installs the MCP conformance suite, and a Node
// that runs it.
func suiteDir() string {
	return filepath.Join(os.Getenv("HOME"), ".local", "share", "mcp-conformance", "node_modules", ".bin")
}

// conformingClient is the program as a client for the conformance suite, which
// tells the server's address, and the scenario.
func conformingClient() {
	scenario, address := os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Args[len(os.Args)-1]
	server := map[string]any{"type": "http", "url": address}
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given) == nil && given.ID != "" {
		server["oauth"] = map[string]any{"clientId": given.ID, "clientSecret": given.Secret}
	}
	config, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": server}})
	call := map[string]string{"tools_call": `add_numbers {"a":5,"b":3}`, "sse-retry": "test_reconnection {}"}[scenario]
	if call == "" {
		call = "test-tool {}"
	}
	dir, err := os.MkdirTemp("", "conformance")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "model"), []byte("call mcp__s__"+call+"\n---\nsay done\n"), 0o600)
	}
	run := func(args ...string) {
		cmd := exec.Command("coder", append(args, "--mcp-config", string(config))...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), "HOME="+dir, "BROWSER=fetchpage", noRaceWait)
		if err == nil {
			err = cmd.Run()
		}
	}
	if strings.HasPrefix(scenario, "auth/") {
		run("mcp", "login", "s")
	}
	run("-p", "--allowed-tools", "mcp__s", "--script", filepath.Join(dir, "model"), "go")
	_ = os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fetchPage is a browser whose person is logged in already.
func fetchPage() {
	if res, err := http.Get(os.Args[1]); err == nil {
		_ = res.Body.Close()
	}
}

// What the suite finds, where it is installed.
func TestMCPConformance(t *testing.T) {
	program := filepath.Join(suiteDir(), "conformance")
	if _, err := os.Stat(program); err != nil {
		t.Skip("the MCP conformance suite is not installed; make tools installs it")
	}
	for _, scenario := range []string{
		"initialize", "tools_call", "sse-retry", "auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3",
		"auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined",
		"auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none", "auth/pre-registration",
		"auth/2025-03-26-oauth-endpoint-fallback", "auth/offline-access-scope", "auth/offline-access-not-supported",
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			cmd := exec.Command(program, "client", "--command", "conformingclient", "--scenario", scenario, "--timeout", "120000")
			cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, &out
			cmd.Env = append(os.Environ(), "PATH="+suiteDir()+string(os.PathListSeparator)+os.Getenv("PATH"))
			if err := cmd.Run(); err != nil || !regexp.MustCompile(`Passed: [1-9][0-9]*/`).Match(out.Bytes()) {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}
