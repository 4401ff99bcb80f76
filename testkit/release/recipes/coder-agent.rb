# Formula for brew, from a signed release.
class CoderAgent < Formula
  desc "Coding agent for the terminal"
  homepage "{{.Address}}"
  version "{{.Version}}"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "{{.Address}}/{{.Archive "darwin" "arm64"}}"
      sha256 "{{.Sum "darwin" "arm64"}}"
    end
    on_intel do
      url "{{.Address}}/{{.Archive "darwin" "amd64"}}"
      sha256 "{{.Sum "darwin" "amd64"}}"
    end
  end

  on_linux do
    on_arm do
      url "{{.Address}}/{{.Archive "linux" "arm64"}}"
      sha256 "{{.Sum "linux" "arm64"}}"
    end
    on_intel do
      url "{{.Address}}/{{.Archive "linux" "amd64"}}"
      sha256 "{{.Sum "linux" "amd64"}}"
    end
  end

  def install
    bin.install "bin/coder"
    bin.install_symlink "coder" => "coder-agent"
    man1.install "share/man/man1/coder.1"
    bash_completion.install "share/bash-completion/completions/coder"
    fish_completion.install "share/fish/vendor_completions.d/coder.fish"
    zsh_completion.install "share/zsh/site-functions/_coder"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/coder version")
  end
end
