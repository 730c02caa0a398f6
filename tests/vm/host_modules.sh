# What `python -m tests.vm.host_modules` runs in its machine; lines "name: value" are the results.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root NO_COLOR=1 COLUMNS=200
export XDG_DATA_HOME=/run/given/data EWAN_RUNTIME=netns EWAN_CACHE=/run/cache EWAN_STATE=/run/ewan PYTHONPATH=$1
mkdir /run/work && cd /run/work || exit
ewan=$1/.venv/bin/ewan
transfer="$ewan transfer dumbbell --rtt 20ms --rate 5M --cc mine"
loaded() { grep -c '^tcp_mine ' /proc/modules; }
echo "without: $($transfer 2>&1 | cat)"
echo "with: $($transfer --for 1s --load-module 2>&1 | grep -e '^mine ' -e '^ewan')"
echo "afterwards: $(loaded)"
$transfer --for 500s --load-module >/dev/null 2>&1 &
while kill -0 $!; do
    case $(cat /sys/module/tcp_mine/refcnt 2>/dev/null) in '' | 0) sleep 0.5 ;; *) break ;; esac
done
kill -9 $!
echo "killed: $(loaded)"
echo "down: $($ewan down --all 2>&1 | grep '^module')"
echo "removed: $(loaded) $(ls -A /run/ewan 2>/dev/null)"
"$1/.venv/bin/python" /run/given/cases.py 2>&1 | cat
