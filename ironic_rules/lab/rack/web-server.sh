cat > /etc/nginx/conf.d/ironic-rules.conf <<'END'
server {
    listen 8080;
    root /var/lib/ironic-rules/httpboot;
    default_type application/octet-stream;
}
END
nginx -t
# The service reads the log of nginx, which is of this group.
usermod --append --groups adm ironic
