set -e
export NO_PROXY=127.0.0.1
rm -f port.txt
python "$SETUPS/service.py" port.txt &
trap "kill $!" EXIT
until [ -s port.txt ]; do sleep 0.05; done
URL=http://127.0.0.1:$(cat port.txt)
