#!/bin/sh
# A Chromium for the tests that look at pages in a browser: found, or installed from Debian when this is root.
# Never an error: without one these tests are skipped, and it is said here what to do about it.
for name in "${DORAL_CHROMIUM:-chromium}" chromium-browser google-chrome google-chrome-stable chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "no Chromium found: installing Debian's for the browser tests"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get -qq update && apt-get -qq --yes --no-install-recommends install chromium; } >/dev/null 2>&1
    command -v chromium >/dev/null 2>&1 && exit 0
    echo "that failed"
fi
echo "SKIPPED: tests/browser. Pages are not looked at in a browser: install Debian's \`chromium\`, or name one in DORAL_CHROMIUM."
exit 0
