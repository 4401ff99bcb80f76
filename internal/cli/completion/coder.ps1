# Completion of coder for PowerShell. Load it with: coder completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName coder -ScriptBlock {
    param($word, $tree, $cursor)
    $typed = @($tree.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor -or $_.Extent.Text -eq $word } | Select-Object -Skip 1 | ForEach-Object { $_.Extent.Text })
    if ($word -eq '') { $typed += '""' }
    & coder __complete @typed 2>$null | ForEach-Object {
        if ($_ -eq ':files') {
            Get-ChildItem -Name "$word*" | ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
        } elseif ($_ -eq ':dirs') {
            Get-ChildItem -Directory -Name "$word*" | ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
        } else {
            $name, $about = $_ -split "`t", 2
            if (-not $about) { $about = $name }
            [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $about)
        }
    }
}
