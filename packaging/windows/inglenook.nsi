; UNTESTED RECIPE. Per-user installer of the tree that build.ps1 laid out: no administrator, in %LOCALAPPDATA%\Programs.
;   makensis /DVERSION=0.1.0 /DTREE=... /DOUTPUT=... inglenook.nsi
Unicode true
!include "MUI2.nsh"
!include "FileFunc.nsh"

!define NAME "Inglenook"
!define KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\Inglenook"

Name "${NAME} ${VERSION}"
OutFile "${OUTPUT}\${NAME}-${VERSION}-x64.exe"
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "Software\${NAME}" "Folder"
RequestExecutionLevel user
SetCompressor /SOLID lzma

!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "German"

Section
  ; A program that runs holds its files: ask to close it rather than leave half of each version.
  retry:
  ClearErrors
  FileOpen $0 "$INSTDIR\python\pythonw.exe" a
  IfErrors 0 free
  IfFileExists "$INSTDIR\python\pythonw.exe" 0 free
  MessageBox MB_RETRYCANCEL "Inglenook is running. Close it, then retry." IDRETRY retry
  Abort
  free:
  FileClose $0
  ; Nothing of the user's lies in this folder, so the old version goes whole.
  RMDir /r "$INSTDIR\python"
  RMDir /r "$INSTDIR\lib"
  SetOutPath "$INSTDIR"
  File /r "${TREE}\*.*"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\python\pythonw.exe" "-I -m inglenook.app" "$INSTDIR\inglenook.ico"
  WriteRegStr HKCU "Software\${NAME}" "Folder" "$INSTDIR"
  WriteRegStr HKCU "${KEY}" "DisplayName" "${NAME}"
  WriteRegStr HKCU "${KEY}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${KEY}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  ${GetSize} "$INSTDIR" "/S=0K" $1 $2 $3
  WriteRegDWORD HKCU "${KEY}" "EstimatedSize" $1
SectionEnd

Section "Uninstall"
  Delete "$SMPROGRAMS\${NAME}.lnk"
  RMDir /r "$INSTDIR\python"
  RMDir /r "$INSTDIR\lib"
  RMDir /r "$INSTDIR\share"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  DeleteRegKey HKCU "${KEY}"
  DeleteRegKey HKCU "Software\${NAME}"
  ; The user's data stays unless they say so, and "no" is what Enter does.
  IfFileExists "$LOCALAPPDATA\inglenook\*.*" 0 done
  MessageBox MB_YESNO|MB_DEFBUTTON2 "Conversations, documents and models are kept in $LOCALAPPDATA\inglenook. Delete them too?" /SD IDNO IDNO done
  RMDir /r "$LOCALAPPDATA\inglenook"
  done:
SectionEnd
