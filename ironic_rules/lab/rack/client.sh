export PATH=/opt/ironic-rules/bin:$PATH
export OS_AUTH_TYPE=http_basic OS_USERNAME=admin OS_PASSWORD=SECRET OS_ENDPOINT=http://192.0.2.10:6385
