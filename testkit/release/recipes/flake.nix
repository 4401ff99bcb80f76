# Flake for nix, from a signed release.
{
  description = "Coding agent for the terminal";
  inputs.nixpkgs.url = "nixpkgs";
  outputs = { self, nixpkgs }:
    let
      archives = {
        x86_64-linux = { name = "{{.Archive "linux" "amd64"}}"; sha256 = "{{.Sum "linux" "amd64"}}"; };
        aarch64-linux = { name = "{{.Archive "linux" "arm64"}}"; sha256 = "{{.Sum "linux" "arm64"}}"; };
        x86_64-darwin = { name = "{{.Archive "darwin" "amd64"}}"; sha256 = "{{.Sum "darwin" "amd64"}}"; };
        aarch64-darwin = { name = "{{.Archive "darwin" "arm64"}}"; sha256 = "{{.Sum "darwin" "arm64"}}"; };
      };
    in {
      packages = builtins.mapAttrs (system: archive: {
        default = nixpkgs.legacyPackages.${system}.stdenvNoCC.mkDerivation {
          pname = "coder-agent";
          version = "{{.Version}}";
          src = nixpkgs.legacyPackages.${system}.fetchurl {
            url = "{{.Address}}/${archive.name}";
            inherit (archive) sha256;
          };
          dontConfigure = true;
          dontBuild = true;
          installPhase = ''
            mkdir -p $out
            cp -r bin share $out/
            rm $out/share/coder/installed
            ln -s coder $out/bin/coder-agent
          '';
          meta.mainProgram = "coder";
        };
      }) archives;
    };
}
