# Completion of coder for fish. Load it with: coder completion fish | source
function __coder_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in ($before[1] __complete $before[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$current"
            case ':dirs'
                __fish_complete_directories "$current"
            case '*'
                echo $line
        end
    end
end
complete -c coder -f -a '(__coder_complete)'
complete -c coder-agent -f -a '(__coder_complete)'
